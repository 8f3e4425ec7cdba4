//! Router advertisements (RFC 4861, section 6.2), on the interfaces that are configured to send them.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use super::discovery;
use super::interfaces::{Interfaces, subnet_router_anycast};
use super::output::Output;
use fullview_plane::interface::Interface;
use fullview_plane::wire::ndp::{self, Builder, LinkAddress};

/// What the advertisements on one link contain. Their prefixes are those of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// The time between two unsolicited advertisements.
    pub interval: Duration,
    /// For how many seconds hosts may use this router as a default router; 0: not at all.
    pub lifetime: u16,
    /// The hop limit that hosts should use.
    pub hop_limit: u8,
    /// For how many seconds an address of a prefix is valid, and for how many it is preferred.
    pub prefix_lifetimes: (u32, u32),
}

impl Default for Advertisement {
    fn default() -> Advertisement {
        let interval = Duration::from_secs(200);
        Advertisement { interval, lifetime: 1800, hop_limit: 64, prefix_lifetimes: (2_592_000, 604_800) }
    }
}

/// The least time between two advertisements on a link, even if hosts solicit them (section 6.2.6).
const PAUSE: Duration = Duration::from_secs(3);

struct Advertiser {
    interface: u16,
    advertisement: Advertisement,
    last: Option<Duration>,
    next: Duration,
}

/// Sends the advertisements of all links.
#[derive(Default)]
pub(super) struct RouterAdvertisers(Vec<Advertiser>);

impl RouterAdvertisers {
    pub fn new(advertisements: &[(u16, Advertisement)]) -> RouterAdvertisers {
        let advertiser = |(interface, advertisement): &(u16, Advertisement)| Advertiser {
            interface: *interface,
            advertisement: *advertisement,
            last: None,
            next: Duration::ZERO,
        };
        RouterAdvertisers(advertisements.iter().map(advertiser).collect())
    }

    pub fn next_deadline(&self) -> Option<Duration> {
        self.0.iter().map(|advertiser| advertiser.next).min()
    }

    /// Handles a host's solicitation: the next advertisement, which goes to all hosts, is sent soon.
    pub fn receive_solicitation(&mut self, now: Duration, interface: u16, message: &[u8]) {
        if ndp::solicitation_source(message).is_err() {
            return;
        }
        let solicited = self.0.iter_mut().filter(|advertiser| advertiser.interface == interface);
        for advertiser in solicited {
            let earliest = advertiser.last.map_or(now, |last| last + PAUSE).max(now);
            advertiser.next = advertiser.next.min(earliest);
        }
    }

    /// Sends the advertisements that are due.
    pub fn tick(&mut self, now: Duration, interfaces: &Interfaces, out: &mut Output) {
        for (number, advertisement) in self.due(now) {
            let from = interfaces.link_local_of(number);
            if let (Some(interface), Some(from)) = (interfaces.get(number), from) {
                let message = message(interface, &advertisement);
                discovery::send(interface, (from, ndp::ALL_NODES.into()), None, message, out);
            }
        }
    }

    fn due(&mut self, now: Duration) -> Vec<(u16, Advertisement)> {
        let due = self.0.iter_mut().filter(|advertiser| advertiser.next <= now);
        due.map(|advertiser| {
            advertiser.last = Some(now);
            advertiser.next = now + advertiser.advertisement.interval.max(PAUSE);
            (advertiser.interface, advertiser.advertisement)
        })
        .collect()
    }
}

fn message(interface: &Interface, advertisement: &Advertisement) -> Vec<u8> {
    let (valid, preferred) = advertisement.prefix_lifetimes;
    let message = Builder::router(advertisement.hop_limit, 0, advertisement.lifetime);
    let message = message.link_address(LinkAddress::Source, interface.mac).mtu(interface.mtu);
    let add =
        |message: Builder, (ip, len): (Ipv6Addr, u8)| message.prefix(ip.to_bits(), len, valid, preferred);
    networks(interface).fold(message, add).build()
}

/// The IPv6 networks of an interface, except link-local ones.
fn networks(interface: &Interface) -> impl Iterator<Item = (Ipv6Addr, u8)> {
    interface
        .addresses
        .iter()
        .filter_map(|own| match own.ip {
            IpAddr::V6(ip) => Some((subnet_router_anycast(ip, own.len), own.len)),
            IpAddr::V4(_) => None,
        })
        .filter(|(network, _)| !network.is_unicast_link_local())
}
