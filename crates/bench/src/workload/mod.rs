//! What a subject is made of: routes, a compiled lookup, packets, route changes.

pub mod answering;
pub mod changes;
pub mod every;
pub mod filter;
pub mod other_rules;
pub mod packets;
pub mod router;
pub mod table;
