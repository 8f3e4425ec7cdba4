//! What fails, and the routes that take over: two networks behind two links to the right host.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::bed::EGRESS;
use super::frame::STATION;
use super::route_table::{GATEWAYS, SPARE_GATEWAYS};
use super::spare_link::SPARE;

/// Addresses of each network to which packets go.
const ADDRESSES: u32 = 64;
/// A network with a less preferred route by the second link, and one with a multipath route by both.
const PREFERRED: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 0);
const MULTIPATH: Ipv4Addr = Ipv4Addr::new(10, 9, 1, 0);

/// What fails while packets come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// The interface goes down; a less preferred route takes over
    Link,
    /// The interface goes down; the other link of a multipath route takes over
    MultipathLink,
    /// The route is withdrawn; a less preferred one takes over
    Route,
}

impl Failure {
    pub const ALL: [Failure; 3] = [Failure::Link, Failure::MultipathLink, Failure::Route];

    /// How data and files name it.
    pub fn word(self) -> &'static str {
        match self {
            Failure::Link => "link",
            Failure::MultipathLink => "multipath-link",
            Failure::Route => "route",
        }
    }

    /// Words for a reader.
    pub fn title(self) -> &'static str {
        match self {
            Failure::Link => "the link goes down, a less preferred route takes over",
            Failure::MultipathLink => "the link goes down, the other one of a multipath route takes over",
            Failure::Route => "the route is withdrawn, a less preferred one takes over",
        }
    }

    /// What makes it fail, for `ip -batch`.
    pub fn line(self) -> String {
        match self {
            Failure::Link | Failure::MultipathLink => format!("link set {EGRESS} down\n"),
            Failure::Route => format!("route del {PREFERRED}/24 dev {EGRESS} metric 10\n"),
        }
    }

    /// Whether the routes are in use that are to fail, by the packets on each link.
    pub fn is_prepared(self, [first, second]: [usize; 2]) -> bool {
        first > 0 && (second > 0) == (self == Failure::MultipathLink)
    }

    pub fn destinations(self) -> Vec<Ipv4Addr> {
        let network = if self == Failure::MultipathLink { MULTIPATH } else { PREFERRED };
        (0..ADDRESSES).map(|host| Ipv4Addr::from_bits(network.to_bits() + host)).collect()
    }
}

/// Sets up or repairs the links and routes of all failures, for `ip -batch`. An interface that goes down loses its
/// neighbours and routes.
pub fn repair() -> String {
    let ([first, beside], [second, _]) = (GATEWAYS, SPARE_GATEWAYS);
    format!(
        "link set {EGRESS} up\n\
         neighbor replace {first} lladdr {STATION} dev {EGRESS} nud permanent\n\
         neighbor replace {beside} lladdr {STATION} dev {EGRESS} nud permanent\n\
         route replace {PREFERRED}/24 via {first} dev {EGRESS} metric 10\n\
         route replace {PREFERRED}/24 via {second} dev {SPARE} metric 20\n\
         route replace {MULTIPATH}/24 nexthop via {first} dev {EGRESS} nexthop via {second} dev {SPARE}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_named_alike_in_files_and_data() {
        for failure in Failure::ALL {
            assert_eq!(serde_json::to_value(failure).unwrap(), failure.word());
        }
    }

    #[test]
    fn a_route_is_prepared_when_packets_use_its_links() {
        assert!(Failure::Link.is_prepared([5, 0]) && Failure::MultipathLink.is_prepared([3, 2]));
        assert!(!Failure::Route.is_prepared([0, 5]), "the withdrawn route is not in use again yet");
        assert!(!Failure::MultipathLink.is_prepared([5, 0]));
    }
}
