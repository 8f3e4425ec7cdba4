//! What a filter sees of a packet.

mod bytes;
mod error;
mod icmp;
mod inet;
mod inet6;
mod key;
mod network;
mod parse;
pub mod protocol;
mod quoted;
mod transport;

pub use error::PacketError;
pub use icmp::{counterpart as icmp_counterpart, is_query as is_icmp_query};
pub use key::{Direction, Fragment, IcmpMessage, NO_INTERFACE, Packet, Pass, Quoted, TcpSegment, Transport};
pub use network::NetworkHeader;
pub use parse::network_header;
pub use transport::plain_segment;
