//! Flows whose packets need no rule and no search for a state: both passes of the packets before them were decided by
//! states, or by rules that ask for nothing in which the packets of a flow differ, by a route that has not changed. Their
//! packets are only counted.
//!
//! The states stay the truth. An entry of the cache says which states decide, by which rules the packet counts, and which
//! next hop it takes. It is removed as soon as one of its states ends, another state of the flow begins, or an end of the
//! flow answers for the first time; it is out of date when the rules, the view or the routes change. When the clock has
//! moved on, the states are asked whether they are still alive, and their times and counters are brought up to date.
//!
//! A segment of TCP moves the windows of its states. So each plain one is followed by them too, and one that they refuse, or
//! that has other flags, meets the rules.
//!
//! Packets of such a flow may be forwarded elsewhere, before the worker sees them ([`FlowOffload`]). The entry stays: it says
//! which states and rules those packets count for, and what ends it ends that too. If its segments are compared with windows there,
//! both sides move the windows of the connection: the worker fetches them before a state judges a segment, and hands them over
//! after the burst.

mod addresses;
mod cache;
mod caches;
mod counted_rules;
mod ends;
mod entry;
mod finder;
mod ip_start;
mod offload;
mod simd;
mod trace;
mod translations;

pub use addresses::{FlowAddresses, FlowMarks, FlowWords, Inet6Addresses, InetAddresses, WireFlow};
pub(crate) use cache::FlowStates;
pub use cache::{FlowCache, FlowTime};
pub use caches::{FamilyFlows, FlowCaches, FlowRoute};
pub use ends::{EndParts, WireEnds};
pub use entry::FlowSum;
pub use finder::{FlowFinder, FlowHash, SoughtEntry, SoughtFlow};
pub use ip_start::{IpStart, is_plain_inet, is_plain_inet6};
pub use offload::{FlowOffload, OffloadedPackets};
pub use simd::{FlowIsa, FlowLoop, WireHasher};
pub use trace::PassTrace;
pub use translations::FlowTranslation;
