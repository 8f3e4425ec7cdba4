//! The sources of tables, and the formats in which they are read and written: the only I/O of this crate.
//!
//! [`load`] reads a routing table from a file. It detects the format ([`Format`]) and the compression ([`Compression`])
//! by content, never by name:
//!
//! | form | module |
//! | --- | --- |
//! | one prefix a line, with or without a next hop | [`text`] |
//! | MRT table dumps of route collectors and BGP daemons | [`mrt`] |
//! | a synthetic table of any size that resembles a real one | [`synthetic`] |
//! | a trace of timed announcements and withdrawals | [`updates`] |
//! | text, BIRD and `ip -batch` output | [`write`](mod@write) |
//!
//! A damaged or hostile file never causes a panic and never yields half a table: the result is a whole
//! [`Table`](crate::Table) or one [`FeedError`] that names the file, the line or byte, and what to do.
#![deny(clippy::indexing_slicing, clippy::string_slice)] // these modules read untrusted input

use std::io::Read;
use std::path::Path;

mod best_path;
mod builder;
mod error;
mod lines;
pub mod mrt;
#[allow(clippy::indexing_slicing)] // it reads no input: it computes its indices
mod next_hops;
mod options;
mod report;
mod source;
#[allow(clippy::indexing_slicing)] // it reads no untrusted input: it computes its indices
pub mod synthetic;
pub mod text;
pub mod updates;
pub mod write;

pub use error::{At, Fault, FeedError};
pub use next_hops::NextHopModel;
pub use options::Options;
pub use report::{LoadReport, Loaded};
pub use source::{Compression, Format};

use builder::TableBuilder;
use source::Source;

/// Loads the table in the file at `path`.
///
/// # Errors
/// A [`FeedError`] if the file cannot be read, is neither text nor an MRT table dump, is damaged, or has a route that
/// cannot be accepted. Nothing is loaded then.
pub fn load(path: &Path, options: &Options) -> Result<Loaded, FeedError> {
    let source = Source::open(path, options.on_progress).map_err(|at| at.in_file(path))?;
    build(source, options).map_err(|at| at.in_file(path))
}

/// Loads a table from any stream; messages use `name` as the name of the file.
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
/// The same as for [`load`].
pub fn read(input: impl Read, name: &Path, options: &Options) -> Result<Loaded, FeedError> {
    let source = Source::new(input, 0, options.on_progress).map_err(|at| at.in_file(name))?;
    build(source, options).map_err(|at| at.in_file(name))
}

fn build(source: Source<'_>, options: &Options) -> Result<Loaded, error::Located> {
    let mut builder = TableBuilder::new(options, source.format, source.compression);
    match source.format {
        Format::Text => text::read_into(source.content, &mut builder)?,
        Format::Mrt => mrt::read_into(source.content, &mut builder)?,
    }
    builder.finish()
}
