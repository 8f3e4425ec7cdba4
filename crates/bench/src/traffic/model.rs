//! Models of traffic: how sources and destinations are drawn.

use std::net::IpAddr;

use fullview_table::{Address, Family, NextHop, Prefix, Rib};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use fullview_plane::forward::martian;

use super::flow::{Flow, FlowError, FlowSet, check_count};
use super::range::EndpointRange;
use super::zipf::Zipf;

/// Packets after which a drawn sequence starts again, unless asked otherwise.
pub const DRAWN_PACKETS: usize = 1 << 20;

/// Where sources and destinations of the reports' flows end: 20 sources, and destinations in one prefix.
const REPORT_SOURCES: usize = 20;

/// Both UDP ports of flows whose ports are not given.
const PORT: u16 = 2000;

/// Packets of one flow in a row.
const ONE_FLOW_PACKETS: usize = 256;

/// Draws in a row that may fail before the model reports that the table holds no destination.
const PATIENCE: usize = 10_000;

/// How flows are chosen. Everything random comes from the seed given to [`Model::flows`].
#[derive(Clone, Debug, PartialEq)]
pub enum Model<A> {
    /// That many flows from one prefix to another, as the netbenches reports send them with pkt-gen: up to 20 sources
    /// from 198.18.10.1 (2001:2:0:10::1) times destinations from 198.19.10.1 (2001:2:0:8010::1), both ports 2000.
    /// 5,000 are 20 × 250, 2,000 are 20 × 100; a count that 20 does not divide uses its largest divisor below 20.
    Netbenches {
        /// Five-tuples.
        flows: usize,
    },
    /// Every source with every destination, in pkt-gen's order: source ports, source addresses, destination ports,
    /// destination addresses, the first the fastest.
    Ranges {
        /// `-s`.
        source: EndpointRange<A>,
        /// `-d`.
        destination: EndpointRange<A>,
        /// Only the first so many.
        most: usize,
    },
    /// A random address in a prefix drawn uniformly from the table, for each packet of the sequence.
    Prefixes {
        /// Length of the sequence; equal five-tuples may come up twice.
        packets: usize,
    },
    /// Uniform over all addresses that may be forwarded to, whether there is a route or not.
    Addresses {
        /// Length of the sequence.
        packets: usize,
    },
    /// As [`Model::Prefixes`], but the prefixes, ranked at random, are drawn by Zipf's law.
    Zipf {
        /// Length of the sequence.
        packets: usize,
        /// 1.0 is Zipf's own.
        exponent: f64,
    },
    /// The first flow of [`Model::Netbenches`].
    One,
}

impl<A: Address> Model<A> {
    /// The packets of this model. Destinations drawn from a table are such as [`forwardable`] admits.
    pub fn flows(&self, rib: &Rib<A>, seed: u64) -> Result<FlowSet<A>, FlowError> {
        self.flows_where(rib, seed, forwardable)
    }

    /// As [`Model::flows`], with another rule for what a router may forward to. Explicit ranges are sent as given:
    /// that is how drops are provoked.
    pub fn flows_where(
        &self,
        rib: &Rib<A>,
        seed: u64,
        admits: impl Fn(A) -> bool,
    ) -> Result<FlowSet<A>, FlowError> {
        let packets = match self {
            Model::Netbenches { flows } => netbenches(*flows)?,
            // Several times, so that the generator need not begin again after every packet.
            Model::One => vec![netbenches(1)?[0]; ONE_FLOW_PACKETS],
            Model::Ranges { source, destination, most } => ranges(source, destination, *most)?,
            Model::Prefixes { packets } => DestinationDraw::new(rib, seed, admits).prefixes(*packets)?,
            Model::Addresses { packets } => DestinationDraw::new(rib, seed, admits).addresses(*packets)?,
            Model::Zipf { packets, exponent } => {
                DestinationDraw::new(rib, seed, admits).zipf(*packets, *exponent)?
            }
        };
        FlowSet::new(packets, rib)
    }
}

/// Whether the forwarding path may forward from the reports' sources to this address: the rules of
/// [`fullview_plane::forward::martian`].
pub fn forwardable<A: Address>(addr: A) -> bool {
    let (source, destination) = (report_networks::<A>().0.to_ip().into(), addr.to_ip().into());
    let verdict = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            martian::inet(source.to_bits(), destination.to_bits(), true)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            martian::inet6(source.to_bits(), destination.to_bits(), true)
        }
        _ => return false,
    };
    verdict.is_none()
}

/// The first source and the first destination of the reports, as integers of either family.
fn report_networks<A: Address>() -> (A, A) {
    let (source, destination) = match A::FAMILY {
        Family::Inet => (0xc612_0a01, 0xc613_0a01),
        Family::Inet6 => (0x2001_0002_0000_0010_u128 << 64 | 1, 0x2001_0002_0000_8010_u128 << 64 | 1),
    };
    #[allow(clippy::expect_used)] // each constant fits the integer of its own family
    let address = |value: u128| A::from(value).expect("a constant of this family");
    (address(source), address(destination))
}

fn netbenches<A: Address>(flows: usize) -> Result<Vec<Flow<A>>, FlowError> {
    check_count(flows as u128, A::FAMILY)?;
    let sources = (1..=REPORT_SOURCES).rev().find(|sources| flows.is_multiple_of(*sources)).unwrap_or(1);
    let (source, destination) = report_networks::<A>();
    let range = |first: A, count: usize| {
        let last = first + A::from(count - 1)?;
        EndpointRange::new((first, last), (PORT, PORT)).filter(|_| within_test_network(last))
    };
    match (range(source, sources), range(destination, flows / sources)) {
        (Some(source), Some(destination)) => ranges(&source, &destination, flows),
        _ => Err(beyond_test_network(flows, A::FAMILY)),
    }
}

/// Whether an address still lies in 198.18.0.0/15 or 2001:2::/48, which RFC 2544 and RFC 5180 set aside for tests.
fn within_test_network<A: Address>(addr: A) -> bool {
    let (source, _) = report_networks::<A>();
    let len = if A::FAMILY == Family::Inet { 15 } else { 48 };
    Prefix::containing(source, len).contains(addr)
}

fn beyond_test_network(flows: usize, family: Family) -> FlowError {
    // Destinations 198.19.10.1 to 198.19.255.255; IPv6 is bounded by the flow label long before.
    let limit = REPORT_SOURCES * 62_975;
    let why = "the destinations end with 198.19.0.0/16; use a multiple of 20, or ranges with several ports";
    FlowError::TooMany { asked: flows as u128, family, limit, why }
}

fn ranges<A: Address>(
    source: &EndpointRange<A>,
    destination: &EndpointRange<A>,
    most: usize,
) -> Result<Vec<Flow<A>>, FlowError> {
    check_count(source.count().saturating_mul(destination.count()).min(most as u128), A::FAMILY)?;
    let from_all = |(to, to_port)| {
        source.endpoints().map(move |(from, port)| Flow::unnumbered(from, to, [port, to_port]))
    };
    Ok(destination.endpoints().flat_map(from_all).take(most).collect())
}

/// Random destinations from a table; every packet comes from the reports' first source.
struct DestinationDraw<'r, A: Address, F> {
    rib: &'r Rib<A>,
    rng: ChaCha8Rng,
    admits: F,
}

impl<'r, A: Address, F: Fn(A) -> bool> DestinationDraw<'r, A, F> {
    fn new(rib: &'r Rib<A>, seed: u64, admits: F) -> Self {
        DestinationDraw { rib, rng: ChaCha8Rng::seed_from_u64(seed), admits }
    }

    fn prefixes(mut self, packets: usize) -> Result<Vec<Flow<A>>, FlowError> {
        let prefixes = self.routed_prefixes()?;
        self.packets(packets, |draw| {
            let prefix = prefixes[draw.rng.random_range(0..prefixes.len())];
            draw.routed_address(prefix)
        })
    }

    fn zipf(mut self, packets: usize, exponent: f64) -> Result<Vec<Flow<A>>, FlowError> {
        let mut prefixes = self.routed_prefixes()?;
        prefixes.shuffle(&mut self.rng);
        let ranks = Zipf::new(prefixes.len(), exponent).ok_or(FlowError::Exponent(exponent))?;
        self.packets(packets, |draw| {
            let prefix = prefixes[ranks.draw(&mut draw.rng)];
            draw.routed_address(prefix)
        })
    }

    fn addresses(mut self, packets: usize) -> Result<Vec<Flow<A>>, FlowError> {
        self.packets(packets, |draw| {
            let addr = draw.address(Prefix::containing(A::zero(), 0));
            (draw.admits)(addr).then_some(addr)
        })
    }

    fn routed_prefixes(&self) -> Result<Vec<Prefix<A>>, FlowError> {
        let routes = self.rib.iter().filter(|route| route.next_hop.is_some());
        let prefixes: Vec<_> = routes.map(|route| route.prefix).collect();
        if prefixes.is_empty() { Err(self.nothing()) } else { Ok(prefixes) }
    }

    /// An address in `prefix` that may be forwarded to and has a route: a longer prefix inside may be a hole.
    fn routed_address(&mut self, prefix: Prefix<A>) -> Option<A> {
        let addr = self.address(prefix);
        let next_hop = self.rib.longest_match(addr).map_or(NextHop::NONE, |route| route.next_hop);
        ((self.admits)(addr) && next_hop.is_some()).then_some(addr)
    }

    /// Uniform over the prefix.
    fn address(&mut self, prefix: Prefix<A>) -> A {
        let random = match A::FAMILY {
            Family::Inet => A::from(self.rng.random::<u32>()),
            Family::Inet6 => A::from(self.rng.random::<u128>()),
        };
        #[allow(clippy::expect_used)] // drawn as the integer that the family's addresses are
        let random = random.expect("an integer of this family");
        prefix.first() | (random & !A::mask(prefix.len()))
    }

    fn packets(
        &mut self,
        packets: usize,
        mut draw: impl FnMut(&mut Self) -> Option<A>,
    ) -> Result<Vec<Flow<A>>, FlowError> {
        check_count(packets as u128, A::FAMILY)?;
        let (source, _) = report_networks::<A>();
        let packet = |_| {
            let destination = (0..PATIENCE).find_map(|_| draw(self)).ok_or_else(|| self.nothing())?;
            Ok(Flow::unnumbered(source, destination, [PORT, PORT]))
        };
        (0..packets).map(packet).collect()
    }

    fn nothing(&self) -> FlowError {
        FlowError::NothingForwardable { family: A::FAMILY, prefixes: self.rib.len() }
    }
}
