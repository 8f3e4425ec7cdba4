//! StandaloneRouter advertisements (RFC 4861, section 6.2): hosts are told that here is a router, where somebody wants that.

use std::net::IpAddr;
use std::time::Duration;

use super::HostStack;
use super::next_hop::NextHopResolver;
use super::output::Output;
use fullview_plane::interface::Interface;
use fullview_plane::wire::ndp::{self, Builder, LinkAddress};

/// What hosts on one link are told. The prefixes are those of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// How often, unasked.
    pub interval: Duration,
    /// For how many seconds this may be a default router; 0: it is none.
    pub lifetime: u16,
    /// The hop limit that hosts should use.
    pub hop_limit: u8,
    /// For how many seconds an address of a prefix is valid, and how long it is preferred.
    pub prefix_lifetimes: (u32, u32),
}

impl Default for Advertisement {
    fn default() -> Advertisement {
        let interval = Duration::from_secs(200);
        Advertisement { interval, lifetime: 1800, hop_limit: 64, prefix_lifetimes: (2_592_000, 604_800) }
    }
}

/// Between two advertisements on a link, whoever asks (section 6.2.6).
const PAUSE: Duration = Duration::from_secs(3);

/// One link's.
struct Advertiser {
    interface: u16,
    advertisement: Advertisement,
    last: Option<Duration>,
    next: Duration,
}

/// Those of all links.
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

    /// Whose turn it is by now, and what they say.
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

impl<W: NextHopResolver> HostStack<W> {
    /// Says what has to be said first: whose addresses these are now. Hosts are told of the router by the next
    /// [`HostStack::tick`].
    pub fn announce(&self, out: &mut Output) {
        for (number, interface) in (0..).zip(&self.interfaces) {
            interface.addresses.iter().for_each(|own| self.announce_one(number, own.ip, out));
        }
    }

    pub(super) fn announce_one(&self, number: u16, own: IpAddr, out: &mut Output) {
        match own {
            IpAddr::V4(ip) => self.arp_announce(number, ip, out),
            IpAddr::V6(ip) => self.ndp_announce(number, ip, out),
        }
    }

    /// A host asks for routers. It is answered by what all hear, soon.
    pub(super) fn solicited_router(&mut self, now: Duration, interface: u16, message: &[u8]) {
        if ndp::solicitation_source(message).is_err() {
            return;
        }
        let asked = self.advertisers.0.iter_mut().filter(|advertiser| advertiser.interface == interface);
        for advertiser in asked {
            let earliest = advertiser.last.map_or(now, |last| last + PAUSE).max(now);
            advertiser.next = advertiser.next.min(earliest);
        }
    }

    /// Tells hosts of the router where it is time to.
    pub(super) fn advertise(&mut self, now: Duration, out: &mut Output) {
        for (number, advertisement) in self.advertisers.due(now) {
            let from = self.link_local_of(number);
            if let (Some(interface), Some(from)) = (self.interface(number), from) {
                let message = message(interface, &advertisement);
                self.send_ndp(number, (from, ndp::ALL_NODES.into()), None, message, out);
            }
        }
    }
}

fn message(interface: &Interface, advertisement: &Advertisement) -> Vec<u8> {
    let (valid, preferred) = advertisement.prefix_lifetimes;
    let message = Builder::router(advertisement.hop_limit, 0, advertisement.lifetime);
    let message = message.link_address(LinkAddress::Source, interface.mac).mtu(interface.mtu);
    let networks =
        interface.addresses.iter().filter_map(|own| match super::local6::network(own.ip, own.len) {
            IpAddr::V6(ip) if !ip.is_unicast_link_local() => Some((ip, own.len)),
            _ => None,
        });
    networks.fold(message, |message, (ip, len)| message.prefix(ip.to_bits(), len, valid, preferred)).build()
}
