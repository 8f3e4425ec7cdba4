//! The neighbour cache of ARP and of neighbour discovery (RFC 826; RFC 4861, section 7.3), with the packets that wait
//! for a link address.

mod admission;
mod cache;
mod entry;
mod id;
mod incomplete;
mod settings;
mod timers;

pub(super) use cache::{CacheUpdate, Enqueued, NeighborCache, NeighborTimeout};
pub(super) use entry::{Evidence, QueuedPacket};
pub use id::NeighborId;
pub use settings::NeighborSettings;
