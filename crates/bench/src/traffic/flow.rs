//! Flows: which five-tuples are sent, in which order, and where each of them has to go.

use fullview_table::{Address, Family, NextHop, Rib};
use rustc_hash::FxHashMap;

use fullview_plane::wire::checksum::Sum;

/// The header fields of one packet, compact, so that a million of them are walked through at memory speed:
/// 20 bytes for IPv4, 48 for IPv6. The protocol is always UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow<A> {
    /// Source address.
    pub source: A,
    /// Destination address.
    pub destination: A,
    /// UDP source port.
    pub source_port: u16,
    /// UDP destination port.
    pub destination_port: u16,
    /// Number of the five-tuple, from 0, in the order in which they are first sent.
    pub id: u32,
    /// Sum of both addresses, ready for the checksum over them.
    pub(super) sum: u16,
}

impl<A: Address> Flow<A> {
    /// A flow that has no number yet.
    pub(super) fn unnumbered(source: A, destination: A, ports: [u16; 2]) -> Self {
        let sum = sum_of(source, destination);
        Flow { source, destination, source_port: ports[0], destination_port: ports[1], id: 0, sum }
    }

    fn tuple(&self) -> (A, A, u16, u16) {
        (self.source, self.destination, self.source_port, self.destination_port)
    }
}

/// An IPv4 address is summed up as an IPv6 address that begins with zeros.
fn sum_of<A: Address>(source: A, destination: A) -> u16 {
    #[allow(clippy::expect_used)] // addresses are unsigned integers of at most 128 bits
    let bytes = |addr: A| addr.to_u128().expect("fits").to_be_bytes();
    Sum::ZERO.bytes(&bytes(source)).bytes(&bytes(destination)).folded()
}

/// Why flows could not be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FlowError {
    /// A model was asked for no packets at all.
    #[error("0 flows asked for; at least 1 is needed")]
    None,
    /// More than the model or the frames can tell apart.
    #[error("{asked} {family} flows asked for; {limit} are possible ({why})")]
    TooMany {
        /// How many were asked for.
        asked: u128,
        /// `inet` or `inet6`.
        family: Family,
        /// The most there can be.
        limit: usize,
        /// What limits them.
        why: &'static str,
    },
    /// The table has nothing that a router would forward to.
    #[error(
        "no destination found in the {family} table ({prefixes} prefixes) that has a route and may be forwarded \
         to; load a table with unicast prefixes"
    )]
    NothingForwardable {
        /// `inet` or `inet6`.
        family: Family,
        /// Prefixes in the table.
        prefixes: usize,
    },
    /// Not a number above zero.
    #[error("Zipf exponent {0} is not a number above 0")]
    Exponent(f64),
}

/// The packets to send, in order, with the five-tuples numbered and their next hops known.
#[derive(Clone, Debug)]
pub struct FlowSet<A> {
    packets: Vec<Flow<A>>,
    /// By flow number: the position in `packets` where it is first sent.
    first: Vec<u32>,
    /// The next hop of each flow, by flow number.
    next_hops: Vec<NextHop>,
}

/// Flows of one family that the frames can tell apart: the 20 bits of an IPv6 flow label. IPv4 has no such limit but
/// memory; 2^24 take 320 MiB.
pub(super) const fn most_flows(family: Family) -> (usize, &'static str) {
    match family {
        Family::Inet => (1 << 24, "kept in memory, 20 bytes each"),
        Family::Inet6 => (1 << 20, "numbered in the 20 bits of the flow label"),
    }
}

impl<A: Address> FlowSet<A> {
    /// Numbers the five-tuples of `packets` and looks their next hops up in `rib`, with which the receiver compares
    /// what the router did.
    pub fn new(packets: Vec<Flow<A>>, rib: &Rib<A>) -> Result<Self, FlowError> {
        check_count(packets.len() as u128, A::FAMILY)?;
        let mut set = FlowSet { packets, first: Vec::new(), next_hops: Vec::new() };
        let mut numbers = FxHashMap::default();
        for (position, flow) in set.packets.iter_mut().enumerate() {
            flow.id = *numbers.entry(flow.tuple()).or_insert(set.first.len() as u32);
            if flow.id as usize == set.first.len() {
                set.first.push(position as u32);
                let route = rib.longest_match(flow.destination);
                set.next_hops.push(route.map_or(NextHop::NONE, |route| route.next_hop));
            }
        }
        Ok(set)
    }

    /// The packets in sending order; after the last the generator starts again with the first.
    pub fn packets(&self) -> &[Flow<A>] {
        &self.packets
    }

    /// The flow of that number.
    #[inline]
    pub fn flow(&self, id: u32) -> Option<&Flow<A>> {
        self.packets.get(*self.first.get(id as usize)? as usize)
    }

    /// Where the RIB sends each flow, by flow number; [`NextHop::NONE`] for a flow without a route.
    pub fn next_hops(&self) -> &[NextHop] {
        &self.next_hops
    }

    /// The number of distinct five-tuples.
    pub fn distinct(&self) -> usize {
        self.first.len()
    }
}

/// Refuses zero flows, and more than the frames can tell apart.
pub(super) fn check_count(asked: u128, family: Family) -> Result<(), FlowError> {
    let (limit, why) = most_flows(family);
    match asked {
        0 => Err(FlowError::None),
        asked if asked > limit as u128 => Err(FlowError::TooMany { asked, family, limit, why }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(destination: u32) -> Flow<u32> {
        Flow::unnumbered(1, destination, [2000, 2000])
    }

    #[test]
    fn equal_five_tuples_share_a_number_and_a_next_hop() {
        let mut rib = Rib::default();
        rib.announce("198.18.0.0/15".parse().unwrap(), NextHop(7));
        let set = FlowSet::new(vec![flow(0xc612_0001), flow(9), flow(0xc612_0001)], &rib).unwrap();
        assert_eq!(set.packets().iter().map(|flow| flow.id).collect::<Vec<_>>(), [0, 1, 0]);
        assert_eq!((set.distinct(), set.next_hops()), (2, &[NextHop(7), NextHop::NONE][..]));
        assert_eq!(set.flow(1).map(|flow| flow.destination), Some(9));
        assert_eq!(set.flow(2), None);
    }

    #[test]
    fn flows_beyond_the_flow_label_are_refused() {
        assert!(check_count(1 << 20, Family::Inet6).is_ok());
        let error = check_count((1 << 20) + 1, Family::Inet6).unwrap_err();
        assert!(error.to_string().contains("1048577 inet6 flows"), "{error}");
        assert_eq!(check_count(0, Family::Inet), Err(FlowError::None));
    }

    #[test]
    fn headers_stay_compact() {
        assert_eq!((size_of::<Flow<u32>>(), size_of::<Flow<u128>>()), (20, 48));
    }
}
