//! Faults of a feed: what is wrong, where, and how to fix it.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use crate::addr::Family;
use crate::nexthop::TooManyNextHops;
use crate::prefix::PrefixError;

/// Why a feed could not be loaded.
#[derive(Debug, thiserror::Error)]
#[error("{}{at}: {fault}", path.display())]
pub struct FeedError {
    /// The file, or the name given for a stream.
    pub path: PathBuf,
    /// The place in it.
    pub at: At,
    /// The fault at this place.
    pub fault: Fault,
}

/// A place in a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The file as a whole.
    Whole,
    /// A line, counted from 1.
    Line(u64),
    /// A byte of the content after decompression, counted from 0.
    Byte(u64),
}

impl Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Whole => Ok(()),
            At::Line(line) => write!(f, ", line {line}"),
            At::Byte(byte) => write!(f, ", byte {byte}"),
        }
    }
}

/// What is wrong. Each message ends with how to fix it.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The file cannot be opened.
    #[error("cannot be opened: {0}; check the name and its permissions")]
    Open(std::io::Error),
    /// A folder was named.
    #[error("is a directory; name a file in it")]
    Directory,
    /// The file has no content.
    #[error("is empty; was it fetched completely?")]
    Empty,
    /// Reading or decompressing failed after the beginning.
    #[error("cannot be read any further: {0}; the file is cut short or damaged, fetch it again")]
    Read(std::io::Error),
    /// A line is longer than the bound: probably this is not a text feed.
    #[error("the line is longer than {limit} bytes; a feed holds one prefix a line")]
    LineTooLong {
        /// The bound, in bytes.
        limit: usize,
    },
    /// The file has bytes that never occur in a text feed.
    #[error("this is not text, and not an MRT table dump; unpack or convert the file first")]
    NotText,
    /// The prefix is wrong.
    #[error("{0}")]
    Prefix(#[from] PrefixError),
    /// The second field is neither an address nor an index.
    #[error(
        "next hop {0:?} is not an address, not a number up to 4294967295 and not `unreachable`; correct or omit it"
    )]
    NextHop(String),
    /// IPv6 packets cannot be sent to an IPv4 router (the reverse is RFC 8950).
    #[error("next hop {gateway} is an IPv4 address, but the route is IPv6; give an IPv6 next hop")]
    GatewayFamily {
        /// The next hop as given.
        gateway: std::net::IpAddr,
    },
    /// The line has more fields than the format.
    #[error("{0:?} follows the last field of the line; put comments after a `#`")]
    Surplus(String),
    /// A prefix occurs twice.
    #[error(
        "repeats {prefix} from line {first}; remove one of them (`sort -u` does where the lines are equal)"
    )]
    Repeated {
        /// The prefix as text, of either family.
        prefix: String,
        /// The line of its first occurrence.
        first: u64,
    },
    /// There are more different next hops than an index can number.
    #[error("{0}")]
    NextHops(#[from] TooManyNextHops),
    /// There are more routes than the options permit.
    #[error("more than {limit} routes; raise the limit if this is meant")]
    TooManyRoutes {
        /// The bound.
        limit: usize,
    },
    /// The next-hop model has an impossible parameter.
    #[error("the next-hop model has {what} = {value}; {fix}")]
    Model {
        /// The name of the parameter.
        what: &'static str,
        /// Its value.
        value: f64,
        /// How to fix it.
        fix: &'static str,
    },
    /// The file has no route of the family asked for.
    #[error("holds no {} route{}; check the file{}", family_name(*family), if *skipped > 0 { " (but others)" } else { "" },
        if family.is_some() { " and the family asked for" } else { "" })]
    NoRoutes {
        /// The family asked for, if one was.
        family: Option<Family>,
        /// The number of routes and records that were skipped.
        skipped: u64,
    },
    /// An MRT record cannot be parsed.
    #[error("MRT record: {0}; the file is cut short or damaged, fetch it again")]
    Mrt(String),
    /// The file is an MRT file of updates instead of a table dump.
    #[error(
        "this MRT file starts with {0} instead of TABLE_DUMP or TABLE_DUMP_V2; take the `rib` file of that time"
    )]
    NotTableDump(String),
    /// A line of an update trace has another form.
    #[error("{0:?} is not an update; write: unix-time a|w prefix next-hop")]
    Update(String),
}

fn family_name(family: Option<Family>) -> &'static str {
    family.map_or("single", Family::name)
}

impl Fault {
    pub(super) fn at(self, at: At) -> Located {
        Located { at, fault: self }
    }
    pub(super) fn at_line(self, line: u64) -> Located {
        self.at(At::Line(line))
    }
    pub(super) fn at_byte(self, byte: u64) -> Located {
        self.at(At::Byte(byte))
    }
}

/// A fault with its place; the entry functions add the name of the file.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) at: At,
    pub(super) fault: Fault,
}

impl Located {
    pub(super) fn in_file(self, path: &Path) -> FeedError {
        FeedError { path: path.into(), at: self.at, fault: self.fault }
    }
}
