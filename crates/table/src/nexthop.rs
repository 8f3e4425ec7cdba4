//! Next hops: a small index for the hot path, and what the index stands for.

use std::fmt::{self, Display};
use std::net::IpAddr;

use rustc_hash::FxHashMap;

/// Index of a next hop in its table; 0 means no route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct NextHop(pub u16);

impl From<u16> for NextHop {
    fn from(index: u16) -> Self {
        NextHop(index)
    }
}

impl NextHop {
    /// No route.
    pub const NONE: NextHop = NextHop(0);
    /// The highest index: a table holds at most this many different next hops.
    pub const MAX: u16 = 65_534;

    /// Whether there is a route.
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }

    /// The index as an array index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a next hop stands for, as a feed names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// The address of the next router.
    Gateway(IpAddr),
    /// A number without further meaning, as in benchmarks and in feeds that carry indices.
    Number(u32),
    /// Several next hops among which flows are shared: the number of a group of [`Groups`](crate::group::Groups).
    Group(u32),
}

impl Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Gateway(ip) => ip.fmt(f),
            Target::Number(n) => n.fmt(f),
            Target::Group(number) => write!(f, "group {number}"),
        }
    }
}

/// A table holds at most [`NextHop::MAX`] different next hops.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{target} would be next hop number {}: a table holds at most {} different next hops; merge some",
    NextHop::MAX as u32 + 1, NextHop::MAX
)]
pub struct TooManyNextHops {
    /// The next hop that did not fit.
    pub target: Target,
}

/// The next hops of one table, numbered from 1 in the order in which they were added.
///
/// ```
/// use fullview_table::{NextHop, NextHops, Target};
///
/// let mut next_hops = NextHops::default();
/// let gateway = Target::Gateway("192.0.2.1".parse()?);
/// assert_eq!(next_hops.intern(gateway)?, NextHop(1));
/// assert_eq!(next_hops.intern(gateway)?, NextHop(1), "already known");
/// assert_eq!(next_hops.target(NextHop(1)), Some(gateway));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct NextHops {
    targets: Vec<Target>,
    index: FxHashMap<Target, NextHop>,
}

impl NextHops {
    /// The index of `target`; a new target gets the next free one.
    ///
    /// # Errors
    /// [`TooManyNextHops`] if it is new and all [`NextHop::MAX`] indices are in use.
    pub fn intern(&mut self, target: Target) -> Result<NextHop, TooManyNextHops> {
        if let Some(known) = self.index.get(&target) {
            return Ok(*known);
        }
        let next = u16::try_from(self.targets.len() + 1).ok().filter(|n| *n <= NextHop::MAX);
        let hop = NextHop(next.ok_or(TooManyNextHops { target })?);
        self.targets.push(target);
        self.index.insert(target, hop);
        Ok(hop)
    }

    /// What an index stands for; `None` for [`NextHop::NONE`] and for an index that is not in use.
    pub fn target(&self, hop: NextHop) -> Option<Target> {
        self.targets.get(hop.index().checked_sub(1)?).copied()
    }

    /// The number of next hops.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there is no next hop.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Every index in use, with what it stands for.
    pub fn iter(&self) -> impl Iterator<Item = (NextHop, Target)> + '_ {
        (1..=NextHop::MAX).map(NextHop).zip(self.targets.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interning_is_stable_and_bounded() {
        let mut hops = NextHops::default();
        let first = hops.intern(Target::Number(7)).unwrap();
        assert_eq!(first, NextHop(1));
        for n in 0..u32::from(NextHop::MAX) {
            hops.intern(Target::Number(n)).unwrap();
        }
        assert_eq!(hops.intern(Target::Number(7)).unwrap(), first);
        let error = hops.intern(Target::Number(70_000)).unwrap_err();
        assert!(error.to_string().contains("65535"), "{error}");
        assert_eq!(hops.target(first), Some(Target::Number(7)));
        assert_eq!(hops.target(NextHop::NONE), None);
    }
}
