//! The RIB: all routes of a table. Every FIB is compiled from it and can be compiled from it again.

use prefix_trie::{AsView, PrefixMap, TrieView};

use crate::addr::{Address, Family};
use crate::nexthop::NextHop;
use crate::prefix::Prefix;

/// One route: where a prefix goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<A: Address> {
    /// The destination.
    pub prefix: Prefix<A>,
    /// The next hop of its packets. [`NextHop::NONE`] makes a hole in a shorter prefix.
    pub next_hop: NextHop,
}

/// One change to a RIB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<A: Address> {
    /// The prefix that changes.
    pub prefix: Prefix<A>,
    /// Its new next hop; `None` withdraws it.
    pub next_hop: Option<NextHop>,
}

/// Facts about a table from which algorithms compute their preference (FreeBSD's `rib_rtable_info`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The family.
    pub family: Family,
    /// Routes in the table.
    pub prefixes: usize,
    /// Different next hops in use.
    pub next_hops: usize,
    /// Routes by prefix length; `BITS + 1` entries.
    pub lengths: Vec<u32>,
}

/// All routes of one family in one table, in order.
///
/// ```
/// use fullview_table::{Change, NextHop, Rib};
///
/// let mut rib = Rib::<u128>::default();
/// assert_eq!(rib.announce("2001:2::/48".parse()?, NextHop(7)), None);
/// let withdrawal = Change { prefix: "2001:2::/48".parse()?, next_hop: None };
/// assert_eq!(rib.apply(withdrawal), Some(NextHop(7)), "the next hop before");
/// assert!(rib.is_empty());
/// # Ok::<(), fullview_table::prefix::PrefixError>(())
/// ```
#[derive(Clone)]
pub struct Rib<A: Address> {
    routes: PrefixMap<Prefix<A>, NextHop>,
    lengths: Vec<u32>,
    /// Routes by next-hop index, grown on demand.
    uses: Vec<u32>,
    generation: u64,
}

impl<A: Address> Default for Rib<A> {
    fn default() -> Self {
        Rib {
            routes: PrefixMap::new(),
            lengths: vec![0; usize::from(A::BITS) + 1],
            uses: Vec::new(),
            generation: 0,
        }
    }
}

impl<A: Address> Rib<A> {
    /// Adds or replaces a route; returns the next hop that the prefix had before.
    pub fn announce(&mut self, prefix: Prefix<A>, next_hop: NextHop) -> Option<NextHop> {
        let before = self.routes.insert(prefix, next_hop);
        self.count(prefix, before, Some(next_hop));
        before
    }

    /// Removes a route; returns its next hop, or `None` if there was no such route.
    pub fn withdraw(&mut self, prefix: Prefix<A>) -> Option<NextHop> {
        let before = self.routes.remove(&prefix);
        self.count(prefix, before, None);
        before
    }

    /// Applies one change; returns the next hop that the prefix had before.
    pub fn apply(&mut self, change: Change<A>) -> Option<NextHop> {
        match change.next_hop {
            Some(next_hop) => self.announce(change.prefix, next_hop),
            None => self.withdraw(change.prefix),
        }
    }

    /// Takes over all routes of another RIB; returns a RIB with the routes before. The generation grows beyond that of
    /// both, so that a FIB that follows this RIB notices the replacement.
    ///
    /// ```
    /// use fullview_table::{NextHop, Rib};
    ///
    /// let (mut rib, mut other) = (Rib::<u32>::default(), Rib::default());
    /// rib.announce("198.18.0.0/15".parse()?, NextHop(1));
    /// other.announce("10.0.0.0/8".parse()?, NextHop(1));
    /// let before = rib.replace(other);
    /// assert!(rib.get("10.0.0.0/8".parse()?).is_some() && rib.len() == 1);
    /// assert!(before.get("198.18.0.0/15".parse()?).is_some() && rib.generation() > before.generation());
    /// # Ok::<(), fullview_table::prefix::PrefixError>(())
    /// ```
    pub fn replace(&mut self, routes: Rib<A>) -> Rib<A> {
        let generation = self.generation.max(routes.generation) + 1;
        std::mem::replace(self, Rib { generation, ..routes })
    }

    fn count(&mut self, prefix: Prefix<A>, before: Option<NextHop>, after: Option<NextHop>) {
        self.generation += u64::from(before != after);
        let length = &mut self.lengths[usize::from(prefix.len())];
        *length = *length + u32::from(after.is_some()) - u32::from(before.is_some());
        if let Some(hop) = after {
            self.uses.resize(self.uses.len().max(hop.index() + 1), 0);
            self.uses[hop.index()] += 1;
        }
        if let Some(hop) = before {
            self.uses[hop.index()] -= 1;
        }
    }

    /// The next hop of this very prefix.
    pub fn get(&self, prefix: Prefix<A>) -> Option<NextHop> {
        self.routes.get(&prefix).copied()
    }

    /// The route that decides for `addr`.
    pub fn longest_match(&self, addr: A) -> Option<Route<A>> {
        let (prefix, next_hop) = self.routes.get_lpm(&Prefix::host(addr))?;
        Some(Route { prefix, next_hop: *next_hop })
    }

    /// The route that decides where `prefix` itself has none: the longest strictly shorter one that covers it.
    pub fn covering(&self, prefix: Prefix<A>) -> Option<Route<A>> {
        let (prefix, next_hop) = self.routes.get_lpm(&prefix.parent()?)?;
        Some(Route { prefix, next_hop: *next_hop })
    }

    /// Every route, ordered by address, shorter prefixes first.
    pub fn iter(&self) -> impl Iterator<Item = Route<A>> + '_ {
        self.routes.iter().map(|(prefix, hop)| Route { prefix, next_hop: *hop })
    }

    /// The routes at or below `prefix`, in the same order.
    pub fn within(&self, prefix: Prefix<A>) -> impl Iterator<Item = Route<A>> + '_ {
        self.routes.children(&prefix).map(|(prefix, hop)| Route { prefix, next_hop: *hop })
    }

    /// The routes below `prefix` that follow `last`, which `prefix` covers, in the same order. This continues a walk
    /// that ended at `last`, without repeating its beginning.
    ///
    /// ```
    /// use fullview_table::{NextHop, Prefix, Rib};
    ///
    /// let mut rib = Rib::<u32>::default();
    /// for prefix in ["10.0.0.0/8", "10.64.0.0/10", "10.64.0.0/16", "10.128.0.0/9", "11.0.0.0/8"] {
    ///     rib.announce(prefix.parse()?, NextHop(1));
    /// }
    /// let after: Vec<_> = rib.after("10.0.0.0/8".parse()?, "10.64.0.0/10".parse()?).collect();
    /// let prefixes: Vec<_> = after.iter().map(|route| route.prefix.to_string()).collect();
    /// assert_eq!(prefixes, ["10.64.0.0/16", "10.128.0.0/9"]);
    /// # Ok::<(), fullview_table::prefix::PrefixError>(())
    /// ```
    pub fn after(&self, prefix: Prefix<A>, last: Prefix<A>) -> impl Iterator<Item = Route<A>> + '_ {
        let longer = self.within(last).filter(move |route| route.prefix != last);
        let path = std::iter::successors(Some(last), |on_path| on_path.parent());
        let path = path.take_while(move |on_path| on_path.len() > prefix.len());
        longer.chain(path.filter_map(Prefix::right_of).flat_map(|beside| self.within(beside)))
    }

    /// The whole address space as disjoint ranges of one next hop; see [`Ranges`].
    ///
    /// ```
    /// use fullview_table::{NextHop, Rib};
    ///
    /// let mut rib = Rib::<u32>::default();
    /// rib.announce("128.0.0.0/1".parse()?, NextHop(1));
    /// let ranges: Vec<_> = rib.ranges().map(|range| (range.first, range.last, range.next_hop)).collect();
    /// assert_eq!(ranges, [(0, 0x7fff_ffff, NextHop::NONE), (0x8000_0000, u32::MAX, NextHop(1))]);
    /// # Ok::<(), fullview_table::prefix::PrefixError>(())
    /// ```
    pub fn ranges(&self) -> Ranges<A, impl Iterator<Item = Route<A>> + '_> {
        Ranges::new(Prefix::containing(A::zero(), 0), NextHop::NONE, self.iter())
    }

    /// The part of the address space below `prefix` as disjoint ranges of one next hop.
    pub fn ranges_within(&self, prefix: Prefix<A>) -> Ranges<A, impl Iterator<Item = Route<A>> + '_> {
        let at = self.routes.view_at(&prefix);
        // Only a prefix without a route of its own needs the route that covers it, which costs a search.
        let own = at.and_then(|at| at.value()).copied();
        let whole = own.or_else(|| Some(self.covering(prefix)?.next_hop));
        // Most prefixes cover no longer ones, and a walk that finds none still allocates.
        let longer = at.is_some_and(|at| at.left().is_some() || at.right().is_some());
        let within = longer.then(|| self.within(prefix)).into_iter().flatten();
        Ranges::new(prefix, whole.unwrap_or(NextHop::NONE), within)
    }

    /// The number of routes.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether there is no route.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// A number that grows with every change that had an effect.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The highest next-hop index in use; [`NextHop::NONE`] in an empty table.
    pub fn highest_next_hop(&self) -> NextHop {
        let index = self.uses.iter().rposition(|uses| *uses > 0).unwrap_or(0);
        NextHop(u16::try_from(index).unwrap_or(u16::MAX))
    }

    /// The facts from which an algorithm is chosen.
    pub fn summary(&self) -> Summary {
        Summary {
            family: A::FAMILY,
            prefixes: self.len(),
            next_hops: self.uses.iter().skip(1).filter(|uses| **uses > 0).count(),
            lengths: self.lengths.clone(),
        }
    }
}

/// A run of addresses with the same answer, ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<A> {
    /// The lowest address.
    pub first: A,
    /// The highest address.
    pub last: A,
    /// The answer for all of them.
    pub next_hop: NextHop,
}

/// An iterator that flattens nested prefixes into disjoint ranges: ordered, without gaps, and with neighbours of equal
/// next hops merged. Every compiled structure starts from it.
///
/// A stack holds the prefixes that are open at the current address; the table's nesting (at most [`Address::BITS`]
/// deep, 8 in a real full view) bounds it.
pub struct Ranges<A: Address, I: Iterator<Item = Route<A>>> {
    routes: std::iter::Peekable<I>,
    /// The last address, and the answer where no prefix is open.
    whole: (A, NextHop),
    open: Vec<(A, NextHop)>,
    /// The first address not yet covered; `None` after the last one.
    at: Option<A>,
    /// The next piece, if it was cut already and did not continue the range before it.
    pending: Option<Range<A>>,
}

impl<A: Address, I: Iterator<Item = Route<A>>> Ranges<A, I> {
    fn new(whole: Prefix<A>, default: NextHop, routes: I) -> Self {
        Ranges {
            routes: routes.peekable(),
            whole: (whole.last(), default),
            open: Vec::new(),
            at: Some(whole.first()),
            pending: None,
        }
    }

    /// The next piece, not yet merged with its neighbours.
    fn piece(&mut self) -> Option<Range<A>> {
        let first = self.at?;
        while let Some(route) = self.routes.next_if(|route| route.prefix.first() == first) {
            self.open.push((route.prefix.last(), route.next_hop));
        }
        let (end, next_hop) = *self.open.last().unwrap_or(&self.whole);
        let last = match self.routes.peek() {
            Some(route) if route.prefix.first() <= end => route.prefix.first() - A::one(),
            _ => end,
        };
        self.close(last);
        Some(Range { first, last, next_hop })
    }

    /// Moves on past `last`, closing the prefixes that end there.
    fn close(&mut self, last: A) {
        while self.open.last().is_some_and(|(end, _)| *end == last) {
            self.open.pop();
        }
        self.at = (last != self.whole.0).then(|| last + A::one());
    }
}

impl<A: Address, I: Iterator<Item = Route<A>>> Iterator for Ranges<A, I> {
    type Item = Range<A>;

    fn next(&mut self) -> Option<Range<A>> {
        let mut range = self.pending.take().or_else(|| self.piece())?;
        while let Some(piece) = self.piece() {
            if piece.next_hop != range.next_hop {
                self.pending = Some(piece);
                break;
            }
            range.last = piece.last;
        }
        Some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rib(routes: &[(&str, u16)]) -> Rib<u32> {
        let mut rib = Rib::default();
        for (prefix, hop) in routes {
            rib.announce(prefix.parse().unwrap(), NextHop(*hop));
        }
        rib
    }

    fn text<I: Iterator<Item = Route<u32>>>(ranges: Ranges<u32, I>) -> Vec<String> {
        ranges.map(|r| format!("{}-{} {}", r.first.to_ip(), r.last.to_ip(), r.next_hop.0)).collect()
    }

    #[test]
    fn an_empty_table_is_one_range_without_a_route() {
        assert_eq!(text(Rib::default().ranges()), ["0.0.0.0-255.255.255.255 0"]);
    }

    #[test]
    fn nested_prefixes_flatten_to_disjoint_ranges() {
        let rib = rib(&[("10.0.0.0/8", 1), ("10.0.0.0/16", 2), ("10.0.1.0/24", 3), ("10.255.255.255/32", 4)]);
        assert_eq!(
            text(rib.ranges()),
            [
                "0.0.0.0-9.255.255.255 0",
                "10.0.0.0-10.0.0.255 2",
                "10.0.1.0-10.0.1.255 3",
                "10.0.2.0-10.0.255.255 2",
                "10.1.0.0-10.255.255.254 1",
                "10.255.255.255-10.255.255.255 4",
                "11.0.0.0-255.255.255.255 0",
            ]
        );
    }

    #[test]
    fn equal_neighbours_merge() {
        let rib = rib(&[("0.0.0.0/1", 5), ("128.0.0.0/1", 5), ("1.0.0.0/8", 5)]);
        assert_eq!(text(rib.ranges()), ["0.0.0.0-255.255.255.255 5"]);
    }

    #[test]
    fn ranges_within_a_prefix_know_what_covers_it() {
        let rib = rib(&[("10.0.0.0/8", 1), ("10.0.1.0/25", 2)]);
        let within = rib.ranges_within("10.0.1.0/24".parse().unwrap());
        assert_eq!(text(within), ["10.0.1.0-10.0.1.127 2", "10.0.1.128-10.0.1.255 1"]);
    }

    #[test]
    fn the_summary_follows_every_change() {
        let mut rib = rib(&[("10.0.0.0/8", 1), ("10.0.0.0/16", 2), ("10.1.0.0/16", 2)]);
        assert_eq!(
            (rib.summary().prefixes, rib.summary().next_hops, rib.highest_next_hop()),
            (3, 2, NextHop(2))
        );
        let generation = rib.generation();
        assert_eq!(rib.announce("10.1.0.0/16".parse().unwrap(), NextHop(2)), Some(NextHop(2)));
        assert_eq!(rib.generation(), generation, "nothing changed");
        rib.withdraw("10.0.0.0/16".parse().unwrap());
        rib.withdraw("10.1.0.0/16".parse().unwrap());
        rib.withdraw("10.1.0.0/16".parse().unwrap());
        let summary = rib.summary();
        assert_eq!((summary.prefixes, summary.next_hops, summary.lengths[16]), (1, 1, 0));
        assert_eq!(rib.highest_next_hop(), NextHop(1));
    }

    #[test]
    fn the_covering_route_is_strictly_shorter() {
        let rib = rib(&[("10.0.0.0/8", 1), ("10.0.0.0/16", 2)]);
        assert_eq!(rib.covering("10.0.0.0/16".parse().unwrap()).unwrap().next_hop, NextHop(1));
        assert_eq!(rib.covering("10.0.0.0/8".parse().unwrap()), None);
        assert_eq!(rib.longest_match(0x0a00_0001).unwrap().next_hop, NextHop(2));
    }
}
