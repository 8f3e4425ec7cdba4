//! Rules in no language yet.

use std::net::IpAddr;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::traffic::{INET, INET6, PORTS};

/// Rules of which the first that matches decides.
pub struct Rules {
    /// What is accepted makes a state, by which further packets of both directions pass.
    pub keep_states: bool,
    /// What no rule decides about.
    pub accepts_others: bool,
    /// The addresses of one set for each family.
    pub sets: [Vec<String>; 2],
    pub rules: Vec<Rule>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Protocol {
    Tcp,
    Udp,
    /// Of the rule's family.
    Icmp,
}

#[derive(Clone)]
pub enum Addresses {
    /// In the usual notation, for example 10.1.0.0/16.
    Network(String),
    /// Those of the set of the rule's family.
    Set,
}

pub struct Rule {
    pub accepts: bool,
    /// Whether it is for IPv6. It has an address or is about ICMP if it matters.
    pub is_inet6: bool,
    pub protocol: Option<Protocol>,
    /// Source and destination.
    pub addresses: [Option<Addresses>; 2],
    /// Ranges of ports, only with TCP and UDP.
    pub ports: [Vec<[u16; 2]>; 2],
    /// Only with ICMP.
    pub icmp_type: Option<u8>,
}

/// One of these.
pub fn one<T: Clone>(random: &mut ChaCha8Rng, of: &[T]) -> T {
    of[random.random_range(0..of.len())].clone()
}

pub fn chance(random: &mut ChaCha8Rng, percent: u32) -> bool {
    random.random_range(0..100) < percent
}

impl Rules {
    pub fn random(random: &mut ChaCha8Rng, keep_states: bool) -> Rules {
        let rules = (0..random.random_range(1..12)).map(|_| Rule::random(random, keep_states)).collect();
        let mut set = |is_inet6| (0..3).map(|number| network(random, is_inet6, number % 2)).collect();
        let sets = [set(false), set(true)];
        // A segment that begins no connection makes no state, and is not accepted without one.
        let accepts_others = !keep_states && chance(random, 30);
        Rules { keep_states, accepts_others, sets, rules }
    }
}

impl Rule {
    fn random(random: &mut ChaCha8Rng, keep_states: bool) -> Rule {
        let accepts = chance(random, 60);
        let protocol = protocol(random, accepts && keep_states);
        let (is_inet6, source) = (chance(random, 35), random.random_range(0..2));
        let addresses =
            [source, 1 - source].map(|side| chance(random, 50).then(|| addresses(random, is_inet6, side)));
        let ports = [20, 60].map(|percent| if chance(random, percent) { ranges(random) } else { Vec::new() });
        let has_ports = matches!(protocol, Some(Protocol::Tcp | Protocol::Udp));
        let ports = if has_ports { ports } else { [const { Vec::new() }; 2] };
        let types: &[u8] = if is_inet6 { &[1, 128, 129] } else { &[0, 3, 8, 11] };
        let icmp_type = (protocol == Some(Protocol::Icmp) && chance(random, 60)).then(|| one(random, types));
        Rule { accepts, is_inet6, protocol, addresses, ports, icmp_type }
    }

    /// Whether packets of the other family cannot match.
    pub fn has_family(&self) -> bool {
        self.protocol == Some(Protocol::Icmp) || self.addresses.iter().any(Option::is_some)
    }
}

fn protocol(random: &mut ChaCha8Rng, is_needed: bool) -> Option<Protocol> {
    let protocols = [Protocol::Tcp, Protocol::Tcp, Protocol::Udp, Protocol::Udp, Protocol::Icmp];
    (is_needed || chance(random, 75)).then(|| one(random, &protocols))
}

fn addresses(random: &mut ChaCha8Rng, is_inet6: bool, side: usize) -> Addresses {
    if chance(random, 25) { Addresses::Set } else { Addresses::Network(network(random, is_inet6, side)) }
}

/// A network around one of the addresses of a side.
fn network(random: &mut ChaCha8Rng, is_inet6: bool, side: usize) -> String {
    if is_inet6 {
        let length = one(random, &[128_u32, 127, 124, 112, 64, 48]);
        let bits = one(random, &INET6[side]) & !(u128::MAX.checked_shr(length).unwrap_or(0));
        return format!("{}/{length}", IpAddr::from(bits.to_be_bytes()));
    }
    let length = one(random, &[32_u32, 31, 28, 24, 17, 16]);
    let bits = one(random, &INET[side]) & !(u32::MAX.checked_shr(length).unwrap_or(0));
    format!("{}/{length}", IpAddr::from(bits.to_be_bytes()))
}

/// One to three ranges, in order and apart.
fn ranges(random: &mut ChaCha8Rng) -> Vec<[u16; 2]> {
    let mut ends: Vec<u16> = (0..2 * random.random_range(1..4)).map(|_| one(random, &PORTS)).collect();
    ends.sort_unstable();
    ends.dedup();
    ends.chunks(2).map(|ends| [ends[0], ends[ends.len() - 1]]).collect()
}
