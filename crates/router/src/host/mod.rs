//! The host stack of a router without a kernel: ARP, neighbour discovery, ICMP, and packets to the router itself.
//!
//! [`HostStack`] receives the packets that the forwarding loop rejected, with the reason. It returns frames to transmit.
//! When it resolves or loses a neighbour it notifies its [`NextHopResolver`](next_hop::NextHopResolver), and the loop gets
//! another [`View`](fullview_plane::view::View). It reads no clock, does no I/O and has no threads: the caller passes in
//! the time and the frames.
//!
//! ```text
//! ports ─▶ Forwarder ─▶ ports
//!             │  ▲
//!    rejected │  │ views, routes
//!             ▼  │
//!         HostStack ─▶ frames ─▶ ports
//! ```
//!
//! The files from the bottom up; each imports only files that stand before it:
//!
//! | layer | files |
//! | --- | --- |
//! | bytes | `packet`, `options`, `fragment`, `fragment6`, `output`, `limit` |
//! | state | `conflict`, `reassembly`, `interfaces`, `source`, `neighbor`, `next_hop`, `received`, `ip_layer` |
//! | sending | `discovery`, `solicitation`, `announcement`, `sender`, `resolution` |
//! | ICMP errors | `error`, `error6`, `redirect`, `reject`, `unresolved` |
//! | protocols | `responder`, `arp`, `ndp`, `advertisers`, `group_reports`, `local`, `local6`, `transit`, `transit6` |
//! | next hops | `config`, `route_tables`, `view_resolver` |
//! | the stack | `counters`, `dispatch`, `tx_queue`, `packet_class`, `channel`, `stack`, `setup`, `mirrored` |
//! | drivers | `router`, `local_host` |

pub mod advertisers;
mod announcement;
mod arp;
pub mod channel;
pub mod config;
mod conflict;
mod counters;
mod discovery;
mod dispatch;
mod error;
mod error6;
mod fragment;
mod fragment6;
mod group_reports;
mod interfaces;
mod ip_layer;
mod limit;
mod local;
mod local6;
pub mod local_host;
mod mirrored;
mod ndp;
mod neighbor;
pub mod next_hop;
mod options;
pub mod output;
mod packet;
mod packet_class;
mod reassembly;
mod received;
mod redirect;
mod reject;
mod resolution;
mod responder;
mod route_tables;
pub mod router;
mod sender;
mod setup;
mod solicitation;
mod source;
mod stack;
mod transit;
mod transit6;
mod tx_queue;
mod unresolved;
pub mod view_resolver;

pub use conflict::AddressConflict;
pub use counters::HostCounters;
pub use limit::RateLimit;
#[cfg(feature = "bpf")]
pub(crate) use limit::TokenBucket;
pub use neighbor::NeighborId;
pub use route_tables::RouteTables;
pub use stack::HostStack;
