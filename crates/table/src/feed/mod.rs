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
//! A damaged or hostile file never panics and never yields half a table: the answer is a whole [`Table`](crate::Table) or one
//! [`FeedError`] that names the file, the line or byte, and what to do.
#![deny(clippy::indexing_slicing, clippy::string_slice)] // what is read here was written by strangers

use std::io::Read;
use std::path::Path;

mod best_path;
mod builder;
mod error;
mod lines;
pub mod mrt;
#[allow(clippy::indexing_slicing)] // reads nothing: its indices are its own
mod next_hops;
mod options;
mod report;
mod source;
#[allow(clippy::indexing_slicing)] // reads nothing: its indices are its own
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
/// A [`FeedError`] if the file cannot be read, is neither text nor an MRT table dump, is damaged, or holds a route
/// that cannot be taken as it stands. Nothing is loaded then.
pub fn load(path: &Path, options: &Options) -> Result<Loaded, FeedError> {
    let source = Source::open(path, options.on_progress).map_err(|at| at.in_file(path))?;
    build(source, options).map_err(|at| at.in_file(path))
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
