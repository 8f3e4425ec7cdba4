//! Rules and addresses of a filter that are there for their number: the packets of an experiment match none of them.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fullview_router::filter::FilterLanguage;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The networks of the packets (RFC 2544, RFC 5180), in which the rules are, so that they match in some parts.
const INET: (u32, u8) = (0xc612_0000, 15);
const INET6: (u128, u8) = (0x2001_0002 << 96, 48);
/// Ports that no packet goes to.
const PORTS: std::ops::Range<u16> = 1..1024;

/// Rules that block, each for a source, a destination and a port: TCP, or UDP to ports below 1,024. Every other one is for
/// IPv6.
pub fn rules(language: FilterLanguage, count: u32, seed: u64) -> String {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (1..=count).fold(String::new(), |mut text, number| {
        let protocol = if random.random() { "tcp" } else { "udp" };
        let [source, destination] = [(); 2].map(|()| part_of_the_networks(number % 2 == 0, &mut random));
        let first = random.random_range(PORTS);
        let last = random.random_range(first..PORTS.end);
        // Text that is written to a string does not fail.
        let _ = match language {
            FilterLanguage::Pf => writeln!(
                text,
                "block quick proto {protocol} from {source} to {destination} port {first}:{last}"
            ),
            // Rules of one number keep their order.
            FilterLanguage::Ipfw => writeln!(
                text,
                "add {} deny {protocol} from {source} to {destination} {first}-{last}",
                number.min(59_999)
            ),
        };
        text
    })
}

/// Addresses on both sides of the packets' networks, one on each line: IPv4 and IPv6 (of 2000::/3) in turns.
pub fn addresses(count: u32, seed: u64) -> Vec<IpAddr> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let address = |number| match number % 2 {
        0 => loop {
            let bits: u32 = random.random();
            if (bits ^ INET.0) >> (32 - INET.1) != 0 {
                break IpAddr::from(Ipv4Addr::from_bits(bits));
            }
        },
        _ => loop {
            let bits = 1 << 125 | random.random::<u128>() >> 3;
            if (bits ^ INET6.0) >> (128 - INET6.1) != 0 {
                break IpAddr::from(Ipv6Addr::from_bits(bits));
            }
        },
    };
    (0..count).map(address).collect()
}

fn part_of_the_networks(is_inet6: bool, random: &mut ChaCha8Rng) -> String {
    if is_inet6 {
        let length = random.random_range(INET6.1..=128);
        let bits = INET6.0 | random.random::<u128>() >> INET6.1;
        return format!("{}/{length}", Ipv6Addr::from_bits(bits & u128::MAX << (128 - length)));
    }
    let length = random.random_range(INET.1..=32);
    let bits = INET.0 | random.random::<u32>() >> INET.1;
    format!("{}/{length}", Ipv4Addr::from_bits(bits & u32::MAX << (32 - length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_on_both_sides_of_the_packets_networks() {
        let drawn = addresses(100_000, 1);
        let inet = drawn.iter().filter_map(|address| match address {
            IpAddr::V4(address) => Some(u128::from(address.to_bits())),
            IpAddr::V6(_) => None,
        });
        let inet6 = drawn.iter().filter_map(|address| match address {
            IpAddr::V4(_) => None,
            IpAddr::V6(address) => Some(address.to_bits()),
        });
        let networks = [(u128::from(INET.0), 32 - INET.1), (INET6.0, 128 - INET6.1)];
        for (drawn, (first, bits)) in [inet.collect::<Vec<_>>(), inet6.collect()].into_iter().zip(networks) {
            let [below, above] = [
                drawn.iter().filter(|address| **address < first).count(),
                drawn.iter().filter(|address| **address >= first + (1 << bits)).count(),
            ];
            assert!(below > 0 && above > 0, "{below} {above}");
            assert_eq!(below + above, 50_000);
        }
    }
}
