//! The catalogue of cases. A case has a stable name and the frames of one exchange.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::frames::{Inet, Inet6};
use crate::topology::{LEFT, SIDES};

mod arp;
mod inet;
mod inet6;
mod link;
mod local;
mod local6;
mod ndp;
mod redirects;
mod redirects6;
mod resolve;

/// One step of a case.
pub enum Step {
    /// The frame arrives on this side.
    Send(usize, Vec<u8>),
    /// The test sends nothing, and waits for this number of frames on each side.
    Wait([usize; SIDES.len()]),
}

/// An exchange of frames.
pub struct Case {
    pub name: String,
    pub steps: Vec<Step>,
}

/// The cases that are played to one router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Catalogue {
    /// The router sends no redirects.
    General,
    /// The router sends redirects; packets leave by the link on which they arrived.
    Redirects,
}

impl Catalogue {
    pub const ALL: [Catalogue; 2] = [Catalogue::General, Catalogue::Redirects];

    /// Returns whether the router is configured to send redirects.
    pub fn redirects(self) -> bool {
        self == Catalogue::Redirects
    }

    /// Returns the cases in the order in which they have to run: the router learns neighbours from some of them.
    pub fn cases(self) -> Vec<Case> {
        let parts: &[fn(&mut Cases)] = match self {
            Catalogue::General => {
                &[inet::add, inet6::add, local::add, local6::add, link::add, arp::add, ndp::add, resolve::add]
            }
            Catalogue::Redirects => &[redirects::add, redirects6::add],
        };
        let mut cases = Cases::default();
        parts.iter().for_each(|add| add(&mut cases));
        cases.list
    }
}

/// The list, and the next unused source. Routers limit errors by their receiver, so cases do not share sources.
#[derive(Default)]
pub struct Cases {
    list: Vec<Case>,
    sources: u16,
}

impl Cases {
    /// Returns a source on the left that no other case uses.
    fn source(&mut self) -> Ipv4Addr {
        self.sources += 1;
        let [high, low] = self.sources.to_be_bytes();
        Ipv4Addr::new(198, 18, high, low)
    }

    /// As [`Cases::source`], for IPv6.
    fn source6(&mut self) -> Ipv6Addr {
        self.sources += 1;
        Ipv6Addr::new(0x2001, 2, 0, 8, 0, 0, 0, self.sources)
    }

    /// Makes a datagram from a new source.
    fn udp(&mut self, destination: impl IntoInet) -> Inet {
        Inet::udp(self.source(), destination.inet())
    }

    /// As [`Cases::udp`], for IPv6.
    fn udp6(&mut self, destination: impl IntoInet6) -> Inet6 {
        Inet6::udp(self.source6(), destination.inet6())
    }

    /// Adds a case of one frame from the left.
    fn frame(&mut self, name: impl Into<String>, frame: Vec<u8>) {
        self.on(LEFT, name, frame);
    }

    /// Adds a case of one frame from any side.
    fn on(&mut self, side: usize, name: impl Into<String>, frame: Vec<u8>) {
        self.steps(name, vec![Step::Send(side, frame)]);
    }

    fn steps(&mut self, name: impl Into<String>, steps: Vec<Step>) {
        self.list.push(Case { name: name.into(), steps });
    }

    /// Adds a case of one packet from the left.
    fn inet(&mut self, name: impl Into<String>, packet: &Inet) {
        self.frame(format!("inet: {}", name.into()), packet.frame_from(LEFT));
    }

    /// Adds a case of one packet from the left.
    fn inet6(&mut self, name: impl Into<String>, packet: &Inet6) {
        self.frame(format!("inet6: {}", name.into()), packet.frame_from(LEFT));
    }
}

/// An address, or its text in the catalogue.
pub trait IntoInet {
    fn inet(self) -> Ipv4Addr;
}

impl IntoInet for &str {
    fn inet(self) -> Ipv4Addr {
        self.parse().expect("the catalogue's addresses are right")
    }
}

impl IntoInet for Ipv4Addr {
    fn inet(self) -> Ipv4Addr {
        self
    }
}

/// An address, or its text in the catalogue.
pub trait IntoInet6 {
    fn inet6(self) -> Ipv6Addr;
}

impl IntoInet6 for &str {
    fn inet6(self) -> Ipv6Addr {
        self.parse().expect("the catalogue's addresses are right")
    }
}

impl IntoInet6 for Ipv6Addr {
    fn inet6(self) -> Ipv6Addr {
        self
    }
}
