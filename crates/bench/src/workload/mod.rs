//! What a subject is made of: routes, a compiled lookup, packets.

pub mod answering;
pub mod every;
pub mod packets;
pub mod router;
pub mod table;
