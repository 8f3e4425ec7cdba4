//! Where tables come from, and the forms they are written in: the only I/O of this crate.
//!
//! [`load`] reads a routing table from a file. It tells the format ([`Format`]) and the compression ([`Compression`])
//! by content, never by name:
//!
//! | form | module |
//! | --- | --- |
//! | one prefix a line, with or without a next hop | [`text`] |
//! | MRT table dumps of route collectors and BGP daemons | [`mrt`] |
//! | a made table of any size that looks like the real one | [`synthetic`] |
//! | a trace of timed announcements and withdrawals | [`updates`] |
//! | text, BIRD and `ip -batch` output | [`write`](mod@write) |
//!
//! A damaged or hostile file never panics and never yields half a table: the answer is a whole [`Table`] or one
//! [`FeedError`] that names the file, the line or byte, and what to do.
#![deny(clippy::indexing_slicing, clippy::string_slice)] // what is read here was written by strangers

use std::io::Read;
use std::path::Path;

use crate::Table;
use crate::addr::Family;

mod best_path;
mod error;
mod gather;
mod lines;
pub mod mrt;
#[allow(clippy::indexing_slicing)] // reads nothing: its indices are its own
mod next_hops;
mod source;
#[allow(clippy::indexing_slicing)] // reads nothing: its indices are its own
pub mod synthetic;
pub mod text;
pub mod updates;
pub mod write;

pub use error::{At, Fault, FeedError};
pub use next_hops::NextHopModel;
pub use source::{Compression, Format};

use gather::Gather;
use source::Source;

/// What to load, and how to complete it.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Keep only the routes of this family; the others are counted in [`LoadReport::skipped`].
    pub family: Option<Family>,
    /// The next hops of routes that carry none.
    pub next_hops: NextHopModel,
    /// Refuse feeds with more routes than this, both families together: the bound on memory.
    pub max_routes: usize,
    /// Told now and then how many bytes of how many have been read from the file (as compressed). The total is 0
    /// where it is not known in advance (a pipe).
    pub on_progress: Option<&'a dyn Fn(u64, u64)>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { family: None, next_hops: NextHopModel::default(), max_routes: 1 << 24, on_progress: None }
    }
}

/// A table and what was met on the way to it.
pub struct Loaded {
    /// The table, complete: every route has a next hop.
    pub table: Table,
    /// Counts, for the user to judge whether this is what they meant to load.
    pub report: LoadReport,
}

/// What a feed held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// How the content was written.
    pub format: Format,
    /// How the file was packed.
    pub compression: Compression,
    /// IPv4 routes loaded.
    pub inet: usize,
    /// IPv6 routes loaded.
    pub inet6: usize,
    /// Routes among them that carried no next hop and got one from [`Options::next_hops`].
    pub without_next_hop: usize,
    /// Lines (text) or records (MRT) read.
    pub records: u64,
    /// Routes of the family not asked for and, in MRT, records that are no unicast routes.
    pub skipped: u64,
    /// MRT only: paths whose attributes are malformed, treated as withdrawn (RFC 7606, section 2).
    pub malformed_paths: u64,
}

/// Loads the table in the file at `path`.
///
/// # Errors
/// A [`FeedError`] if the file cannot be read, is neither text nor an MRT table dump, is damaged, or holds a route
/// that cannot be taken as it stands. Nothing is loaded then.
pub fn load(path: &Path, options: &Options) -> Result<Loaded, FeedError> {
    let source = Source::open(path, options.on_progress).map_err(|at| at.in_file(path))?;
    gather(source, options).map_err(|at| at.in_file(path))
}

/// Loads a table from any stream; `name` stands for the file in messages.
///
/// ```
/// use fullview_table::feed::{self, Options};
///
/// let text = "198.18.0.0/15 192.0.2.1\n2001:2::/48 2001:db8::1\n";
/// let loaded = feed::read(text.as_bytes(), "two routes".as_ref(), &Options::default())?;
/// assert_eq!((loaded.report.inet, loaded.report.inet6), (1, 1));
///
/// let damaged = feed::read("198.18.0.0/99\n".as_bytes(), "a file".as_ref(), &Options::default());
/// let error = damaged.err().ok_or("loaded")?;
/// assert_eq!(error.to_string(), "a file, line 1: prefix length \"99\" is not a number from 0 to 32");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`load`].
pub fn read(input: impl Read, name: &Path, options: &Options) -> Result<Loaded, FeedError> {
    let source = Source::new(input, 0, options.on_progress).map_err(|at| at.in_file(name))?;
    gather(source, options).map_err(|at| at.in_file(name))
}

fn gather(source: Source<'_>, options: &Options) -> Result<Loaded, error::Located> {
    let mut gather = Gather::new(options, source.format, source.compression);
    match source.format {
        Format::Text => text::gather(source.content, &mut gather)?,
        Format::Mrt => mrt::gather(source.content, &mut gather)?,
    }
    gather.finish()
}
