//! Traces of BGP updates: `unix-time a|w prefix next-hop`, one in a line, in order of time.
//!
//! ```text
//! 1418774413 w 202.70.88.0/21 0.0.0.0
//! 1418774413 a 202.70.88.0/21 195.66.226.74
//! ```
//!
//! `a` announces, `w` withdraws; a withdrawal needs no next hop, and one that is given is ignored. Comments and line
//! ends are those of [`text`]. The traces of the poptrie authors have this format.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use crate::addr::Address;
use crate::nexthop::{NextHops, Target};
use crate::prefix::Prefix;
use crate::rib::Change;
use crate::table::Table;

use super::error::{Fault, FeedError, Located};
use super::lines::Lines;
use super::source::Source;
use super::text;

/// A change of either family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyChange {
    /// IPv4.
    Inet(Change<u32>),
    /// IPv6.
    Inet6(Change<u128>),
}

/// One line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// When it was received, in seconds since 1970.
    pub seconds: u64,
    /// The change of the table.
    pub change: FamilyChange,
    /// What the next hop of the change stands for; `None` for a withdrawal.
    pub target: Option<Target>,
}

impl Update {
    /// Applies the change to the table whose next hops were used to read the trace.
    pub fn apply(&self, table: &mut Table) {
        match self.change {
            FamilyChange::Inet(change) => table.inet.apply(change),
            FamilyChange::Inet6(change) => table.inet6.apply(change),
        };
    }
}

/// The updates of a trace, in order; the iterator ends after the first error. [`read`] makes it.
pub struct Updates<'a> {
    lines: Lines<Box<dyn BufRead + 'a>>,
    next_hops: &'a mut NextHops,
    name: PathBuf,
    failed: bool,
}

/// Opens the trace in `input`, compressed or not; messages use `name` as the name of the file. New next hops are added
/// to `next_hops`.
///
/// ```
/// use fullview_table::feed::updates;
/// use fullview_table::{Table, Target};
///
/// let mut table = Table::default();
/// let trace = "1418774413 a 198.18.0.0/15 192.0.2.1\n1418774414 w 198.18.0.0/15\n";
/// let changes = updates::read(trace.as_bytes(), "a trace".as_ref(), &mut table.next_hops)?;
/// let changes = changes.collect::<Result<Vec<_>, _>>()?;
/// changes[0].apply(&mut table);
/// assert_eq!(table.inet.len(), 1);
/// changes[1].apply(&mut table);
/// assert!(table.inet.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A [`FeedError`] if the beginning cannot be read or the input is empty.
pub fn read<'a>(
    input: impl Read + 'a,
    name: &Path,
    next_hops: &'a mut NextHops,
) -> Result<Updates<'a>, FeedError> {
    let source = Source::new(input, 0, None).map_err(|at| at.in_file(name))?;
    Ok(Updates { lines: Lines::new(source.content), next_hops, name: name.into(), failed: false })
}

/// Loads a whole trace from a file.
///
/// # Errors
/// A [`FeedError`] that names the first line that is not an update, or the reason why the file cannot be read.
pub fn load(path: &Path, next_hops: &mut NextHops) -> Result<Vec<Update>, FeedError> {
    let source = Source::open(path, None).map_err(|at| at.in_file(path))?;
    Updates { lines: Lines::new(source.content), next_hops, name: path.into(), failed: false }.collect()
}

impl Updates<'_> {
    fn advance(&mut self) -> Result<Option<Update>, Located> {
        let Some(line) = self.lines.next_line()? else { return Ok(None) };
        let update = update(line.content, self.next_hops);
        update.map(Some).map_err(|fault| fault.at_line(line.number))
    }
}

impl Iterator for Updates<'_> {
    type Item = Result<Update, FeedError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.advance().map_err(|at| at.in_file(&self.name));
        self.failed = next.is_err();
        next.transpose()
    }
}

fn update(content: &str, next_hops: &mut NextHops) -> Result<Update, Fault> {
    let fields: Vec<&str> = content.split_ascii_whitespace().collect();
    let (time, prefix, target) = match fields[..] {
        [time, "a", prefix, next_hop] => (time, prefix, Some(text::target(next_hop)?)),
        [time, "w", prefix] | [time, "w", prefix, _] => (time, prefix, None),
        _ => return Err(Fault::Update(content.into())),
    };
    let seconds = time.parse().map_err(|_| Fault::Update(content.into()))?;
    let change = if prefix.contains(':') {
        FamilyChange::Inet6(change(prefix.parse()?, target, next_hops)?)
    } else {
        FamilyChange::Inet(change(prefix.parse()?, target, next_hops)?)
    };
    Ok(Update { seconds, change, target })
}

fn change<A: Address>(
    prefix: Prefix<A>,
    target: Option<Target>,
    next_hops: &mut NextHops,
) -> Result<Change<A>, Fault> {
    if let Some(Target::Gateway(gateway)) = target
        && A::BITS == 128
        && gateway.is_ipv4()
    {
        return Err(Fault::GatewayFamily { gateway });
    }
    let next_hop = target.map(|target| next_hops.intern(target)).transpose()?;
    Ok(Change { prefix, next_hop })
}
