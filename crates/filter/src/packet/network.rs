use super::key::Fragment;
use crate::address::{Address, Family};

/// What the header of either family says, and where the transport header starts.
#[derive(Clone, Copy, Debug)]
pub struct NetworkHeader {
    pub family: Family,
    pub source: Address,
    pub destination: Address,
    pub protocol: u8,
    pub length: u16,
    pub tos: u8,
    pub ttl: u8,
    pub has_options: bool,
    pub has_extensions: bool,
    pub fragment: Fragment,
    /// The offset of the transport header.
    pub payload: usize,
}
