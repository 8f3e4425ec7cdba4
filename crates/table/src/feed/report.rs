//! A loaded table, and what its feed held.

use crate::table::Table;

use super::source::{Compression, Format};

/// A table, and a report about its feed.
pub struct Loaded {
    /// The table, complete: every route has a next hop.
    pub table: Table,
    /// Counts that let users check that they loaded the intended table.
    pub report: LoadReport,
}

/// What a feed contained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// The format of the content.
    pub format: Format,
    /// The compression of the file.
    pub compression: Compression,
    /// IPv4 routes loaded.
    pub inet: usize,
    /// IPv6 routes loaded.
    pub inet6: usize,
    /// Routes among them that carried no next hop and got one from [`Options::next_hops`](super::Options::next_hops).
    pub without_next_hop: usize,
    /// Lines (text) or records (MRT) read.
    pub records: u64,
    /// Routes of the family not asked for and, in MRT, records that are not unicast routes.
    pub skipped: u64,
    /// MRT only: paths whose attributes are malformed, treated as withdrawn (RFC 7606, section 2).
    pub malformed_paths: u64,
}
