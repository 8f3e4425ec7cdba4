//! The best of several BGP paths, by the part of RFC 4271, section 9.1 for which a table dump has the attributes.
//!
//! The criteria, in this order: the highest LOCAL_PREF (100 where there is none); the shortest AS_PATH (an AS_SET
//! counts one, confederation segments none); the lowest ORIGIN; among paths by the same neighbour AS, the lowest
//! MULTI_EXIT_DISC (0 where there is none); the lowest ORIGINATOR_ID or BGP identifier; the lowest peer address; the
//! lowest path identifier.
//!
//! A dump does not contain whether a path is eBGP or iBGP, and the distance to the next hop, so these are ignored.
//!
//! Because of MULTI_EXIT_DISC the criteria are no total order: each of three paths can beat another, and the winner of
//! pairwise comparisons would depend on the order of the file. So the best path *of each neighbour AS* is kept (within
//! one AS the criteria are an order), and the winner is chosen from these at the end, as RFC 4271 specifies.

use std::cmp::Reverse;
use std::net::IpAddr;

/// One path, reduced to its criteria and its next hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BgpPath {
    pub(super) rank: Rank,
    pub(super) neighbor_as: u32,
    pub(super) med: u32,
    pub(super) tie: Tie,
    /// The next hop; `None` if neither the path nor its peer has an address that fits.
    pub(super) via: Option<IpAddr>,
}

/// The criteria that come first, for all paths; the lowest is best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) local_pref: Reverse<u32>,
    pub(super) as_path_len: usize,
    pub(super) origin: u8,
}

/// The criteria that come last; the lowest is best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tie {
    pub(super) bgp_id: u32,
    pub(super) peer: IpAddr,
    pub(super) path_id: u32,
}

/// The paths of one prefix that can still win: of equal rank, one for each neighbour AS.
pub(super) struct Contest {
    first: BgpPath,
    others: Vec<BgpPath>,
}

impl Contest {
    pub(super) fn new(path: BgpPath) -> Self {
        Contest { first: path, others: Vec::new() }
    }

    /// Adds one more path.
    pub(super) fn enter(&mut self, path: BgpPath) {
        if path.rank < self.first.rank {
            *self = Contest::new(path);
        } else if path.rank == self.first.rank {
            self.enter_equal(path);
        }
    }

    fn enter_equal(&mut self, path: BgpPath) {
        let mut all = std::iter::once(&mut self.first).chain(&mut self.others);
        match all.find(|known| known.neighbor_as == path.neighbor_as) {
            Some(known) if (path.med, path.tie) < (known.med, known.tie) => *known = path,
            Some(_) => {}
            None => self.others.push(path),
        }
    }

    /// The next hop of the winner.
    pub(super) fn winner(&self) -> Option<IpAddr> {
        let all = std::iter::once(&self.first).chain(&self.others);
        all.min_by_key(|path| path.tie).and_then(|path| path.via)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path with an AS path of `rank` hops; the peer and the next hop are 192.0.2.`id`.
    fn path(rank: usize, neighbor_as: u32, med: u32, id: u8) -> BgpPath {
        let rank = Rank { local_pref: Reverse(100), as_path_len: rank, origin: 0 };
        let peer = IpAddr::from([192, 0, 2, id]);
        let tie = Tie { bgp_id: id.into(), peer, path_id: 0 };
        BgpPath { rank, neighbor_as, med, tie, via: Some(peer) }
    }

    fn winner(paths: &[BgpPath]) -> u8 {
        let mut contest = Contest::new(paths[0].clone());
        paths[1..].iter().for_each(|path| contest.enter(path.clone()));
        match contest.winner() {
            Some(IpAddr::V4(ip)) => ip.octets()[3],
            other => panic!("{other:?}"),
        }
    }

    /// 1 beats 2 by MED, 2 beats 3 and 3 beats 1 by identifier: in pairwise comparisons each could win.
    #[test]
    fn the_winner_does_not_depend_on_the_order() {
        let paths = [path(1, 10, 5, 30), path(1, 10, 9, 10), path(1, 20, 0, 20)];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            assert_eq!(winner(&order.map(|i| paths[i].clone())), 20, "{order:?}");
        }
    }

    #[test]
    fn a_better_rank_beats_all_kept_paths() {
        assert_eq!(winner(&[path(3, 1, 0, 1), path(3, 2, 0, 2), path(2, 3, 9, 9)]), 9);
        assert_eq!(winner(&[path(2, 3, 9, 9), path(3, 1, 0, 1)]), 9);
    }
}
