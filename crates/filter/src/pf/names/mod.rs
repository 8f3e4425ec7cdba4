//! Names that rules use for numbers.

pub mod icmp;
pub mod protocols;
pub mod reserved;
pub mod services;
pub mod tos;
