//! Packet filters in a small subset of tcpdump's language; a packet has to pass all tests of a filter.
//!
//! ```text
//! dst 192.0.2.0/24
//! inet6 and src 2001:db8::/32 and proto icmp6
//! udp and dport 53
//! ```

use std::net::IpAddr;
use std::str::FromStr;

use fullview_table::{Address, Prefix};

use crate::wire::ethernet::{EtherType, Frame};
use crate::wire::ipv4::{self, Ipv4Packet};
use crate::wire::ipv6::{self, Ipv6Packet};
use crate::wire::transport::ports;

/// Tests of one filter at most: every packet passes all of them while a trace runs.
const MOST_TESTS: usize = 16;

/// Tests for a packet; an empty filter matches all packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketFilter {
    /// Matches only packets of this port and VLAN; VLAN 0 stands for untagged frames.
    pub ingress: Option<(u16, u16)>,
    pub(super) tests: Vec<FilterTest>,
}

/// A filter that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}; write tests joined by \"and\": inet, inet6, arp, src PREFIX, dst PREFIX, proto NAME-OR-NUMBER, udp, tcp, \
     icmp, icmp6, sport N, dport N, vlan N"
)]
pub struct PacketFilterError(String);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FilterTest {
    Type(EtherType),
    Vlan(u16),
    Source(FilterPrefix),
    Destination(FilterPrefix),
    Protocol(u8),
    SourcePort(u16),
    DestinationPort(u16),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FilterPrefix {
    Inet(Prefix<u32>),
    Inet6(Prefix<u128>),
}

impl FilterPrefix {
    fn contains(&self, addr: Option<IpAddr>) -> bool {
        match (self, addr) {
            (FilterPrefix::Inet(prefix), Some(IpAddr::V4(ip))) => prefix.contains(ip.to_bits()),
            (FilterPrefix::Inet6(prefix), Some(IpAddr::V6(ip))) => prefix.contains(ip.to_bits()),
            _ => false,
        }
    }
}

/// Parses a prefix, or an address as a host prefix.
impl FromStr for FilterPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<FilterPrefix, String> {
        let whole = |error| format!("{error}");
        match text.parse() {
            Ok(IpAddr::V4(ip)) => Ok(FilterPrefix::Inet(Prefix::host(u32::from_ip(ip)))),
            Ok(IpAddr::V6(ip)) => Ok(FilterPrefix::Inet6(Prefix::host(u128::from_ip(ip)))),
            Err(_) if text.contains(':') => text.parse().map(FilterPrefix::Inet6).map_err(whole),
            Err(_) => text.parse().map(FilterPrefix::Inet).map_err(whole),
        }
    }
}

impl FromStr for PacketFilter {
    type Err = PacketFilterError;

    fn from_str(text: &str) -> Result<PacketFilter, PacketFilterError> {
        let mut words = text.split_whitespace();
        let mut tests = Vec::new();
        while let Some(word) = words.next() {
            if tests.len() == MOST_TESTS {
                return Err(PacketFilterError(format!("more than {MOST_TESTS} tests")));
            }
            tests.push(test(word, &mut words).map_err(PacketFilterError)?);
            match words.next() {
                None | Some("and") => {}
                Some(other) => {
                    return Err(PacketFilterError(format!("\"{other}\" where \"and\" is expected")));
                }
            }
        }
        if text.split_whitespace().next_back() == Some("and") {
            return Err(PacketFilterError("nothing follows the last \"and\"".into()));
        }
        Ok(PacketFilter { ingress: None, tests })
    }
}

fn test<'t>(word: &str, words: &mut impl Iterator<Item = &'t str>) -> Result<FilterTest, String> {
    let mut argument = || words.next().ok_or_else(|| format!("nothing follows \"{word}\""));
    Ok(match word {
        "inet" | "ip" => FilterTest::Type(EtherType::IPV4),
        "inet6" | "ip6" => FilterTest::Type(EtherType::IPV6),
        "arp" => FilterTest::Type(EtherType::ARP),
        "src" => FilterTest::Source(argument()?.parse()?),
        "dst" => FilterTest::Destination(argument()?.parse()?),
        "sport" => FilterTest::SourcePort(number(argument()?)?),
        "dport" => FilterTest::DestinationPort(number(argument()?)?),
        "vlan" => FilterTest::Vlan(number(argument()?)?),
        "proto" => FilterTest::Protocol(protocol(argument()?)?),
        name => FilterTest::Protocol(named(name).ok_or_else(|| format!("\"{name}\" is not understood"))?),
    })
}

fn number(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not a number from 0 to 65535"))
}

fn protocol(text: &str) -> Result<u8, String> {
    let number = named(text).or_else(|| text.parse().ok());
    number
        .ok_or_else(|| format!("\"{text}\" is neither a protocol's number nor one of udp, tcp, icmp, icmp6"))
}

fn named(name: &str) -> Option<u8> {
    match name {
        "icmp" => Some(1),
        "tcp" => Some(6),
        "udp" => Some(17),
        "icmp6" => Some(58),
        _ => None,
    }
}

impl PacketFilter {
    /// Whether a frame from `port` matches. A frame that is too short for a test does not match.
    pub fn matches(&self, port: u16, frame: &[u8]) -> bool {
        let Ok(frame) = Frame::new_checked(frame) else {
            return self.tests.is_empty() && self.ingress.is_none_or(|(of, _)| of == port);
        };
        let vlan = frame.vlan().unwrap_or(0);
        if self.ingress.is_some_and(|ingress| ingress != (port, vlan)) {
            return false;
        }
        let fields = FilterFields::read(&frame);
        self.tests.iter().all(|test| fields.pass(test))
    }
}

/// The fields of a packet that tests compare.
struct FilterFields {
    ethertype: EtherType,
    vlan: u16,
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    protocol: Option<u8>,
    ports: Option<(u16, u16)>,
}

impl FilterFields {
    fn read(frame: &Frame<&[u8]>) -> FilterFields {
        let ethertype = frame.ethertype();
        let bare = FilterFields {
            ethertype,
            vlan: frame.vlan().unwrap_or(0),
            source: None,
            destination: None,
            protocol: None,
            ports: None,
        };
        match ethertype {
            EtherType::IPV4 => bare.with_inet(frame.payload()),
            EtherType::IPV6 => bare.with_inet6(frame.payload()),
            _ => bare,
        }
    }

    /// Reads a packet with wrong lengths too, so that a trace finds it by its addresses.
    fn with_inet(self, packet: &[u8]) -> FilterFields {
        if packet.len() < ipv4::HEADER {
            return self;
        }
        let ip = Ipv4Packet::new_unchecked(packet);
        let ports =
            (ip.fragment_offset() == 0).then(|| ports(packet, ip.protocol(), ip.header_len())).flatten();
        FilterFields {
            source: Some(ip.source().to_ip().into()),
            destination: Some(ip.destination().to_ip().into()),
            protocol: Some(ip.protocol()),
            ports,
            ..self
        }
    }

    fn with_inet6(self, packet: &[u8]) -> FilterFields {
        if packet.len() < ipv6::HEADER {
            return self;
        }
        let ip = Ipv6Packet::new_unchecked(packet);
        FilterFields {
            source: Some(ip.source().to_ip().into()),
            destination: Some(ip.destination().to_ip().into()),
            protocol: Some(ip.next_header()),
            ports: ports(packet, ip.next_header(), ipv6::HEADER),
            ..self
        }
    }

    fn pass(&self, test: &FilterTest) -> bool {
        match test {
            FilterTest::Type(ethertype) => self.ethertype == *ethertype,
            FilterTest::Vlan(vlan) => self.vlan == *vlan,
            FilterTest::Source(network) => network.contains(self.source),
            FilterTest::Destination(network) => network.contains(self.destination),
            FilterTest::Protocol(protocol) => self.protocol == Some(*protocol),
            FilterTest::SourcePort(port) => self.ports.is_some_and(|(source, _)| source == *port),
            FilterTest::DestinationPort(port) => {
                self.ports.is_some_and(|(_, destination)| destination == *port)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ethernet, IPv4 192.0.2.1 to 198.51.100.7, UDP 1000 to 53.
    fn frame() -> Vec<u8> {
        let mut frame = [2; 12].to_vec();
        frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7]);
        frame.extend([0x03, 0xe8, 0, 53, 0, 8, 0, 0]);
        frame
    }

    #[test]
    fn all_tests_have_to_match() {
        let fits = |text: &str| text.parse::<PacketFilter>().unwrap().matches(3, &frame());
        for text in [
            "",
            "inet",
            "dst 198.51.100.0/24",
            "src 192.0.2.1",
            "udp and dport 53",
            "proto 17 and sport 1000",
        ] {
            assert!(fits(text), "{text}");
        }
        for text in
            ["inet6", "arp", "dst 198.51.101.0/24", "udp and dport 54", "tcp", "src ::/0", "vlan 7", "icmp6"]
        {
            assert!(!fits(text), "{text}");
        }
        let at =
            |ingress| PacketFilter { ingress: Some(ingress), ..PacketFilter::default() }.matches(3, &frame());
        assert_eq!([(3, 0), (2, 0), (3, 9)].map(at), [true, false, false]);
    }

    #[test]
    fn errors_name_what_is_not_understood() {
        let refused = |text: &str| text.parse::<PacketFilter>().unwrap_err().to_string();
        assert!(refused("dst 192.0.2.0/33").contains("33"));
        assert!(refused("port 5").contains("\"port\" is not understood"));
        assert!(refused("udp dport 5").contains("\"dport\" where \"and\""));
        assert!(refused("udp and").contains("nothing follows the last"));
        assert!(refused("dst").contains("nothing follows \"dst\""));
        assert!(refused("sport 70000").contains("70000"));
        let long = |tests: usize| ["udp"].repeat(tests).join(" and ");
        assert!(long(MOST_TESTS).parse::<PacketFilter>().is_ok());
        assert!(refused(&long(MOST_TESTS + 1)).starts_with("more than 16 tests"));
    }

    #[test]
    fn short_frames_match_no_test() {
        for len in 0..frame().len() {
            let udp: PacketFilter = "udp and dport 53".parse().unwrap();
            assert!(!udp.matches(0, &frame()[..len]) || len >= 38, "{len}");
            assert!(PacketFilter::default().matches(0, &frame()[..len]));
        }
    }
}
