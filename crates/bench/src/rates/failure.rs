//! What fails, and the routes that take over: two networks behind two links to the right host.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::bed::EGRESS;
use super::frame::STATION;
use super::route_table::{FAILING_NETWORKS, GATEWAYS, SPARE_GATEWAYS};
use super::spare_link::SPARE;

/// The two links of a device to the right host: names of its interfaces, and the stations behind them with their Ethernet
/// addresses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailureLinks {
    /// What fails.
    pub egress: String,
    pub spare: String,
    pub stations: Vec<(Ipv4Addr, String)>,
    pub spare_station: Ipv4Addr,
}

impl FailureLinks {
    /// Those of the test bed in namespaces.
    pub fn of_bed() -> FailureLinks {
        FailureLinks {
            egress: EGRESS.into(),
            spare: SPARE.into(),
            stations: GATEWAYS.map(|address| (address, STATION.to_string())).into(),
            spare_station: SPARE_GATEWAYS[0],
        }
    }

    /// By which station packets go until something fails.
    fn station(&self) -> Ipv4Addr {
        self.stations.first().map_or(Ipv4Addr::UNSPECIFIED, |(address, _)| *address)
    }

    /// Sets up or repairs the links and routes of all failures, in lines of `ip`. An interface that goes down loses its
    /// neighbours and routes.
    pub fn repair(&self) -> Vec<String> {
        let FailureLinks { egress, spare, stations, spare_station: second } = self;
        let (first, neighbor) = (self.station(), |(address, mac): &(Ipv4Addr, String)| {
            format!("neighbor replace {address} lladdr {mac} dev {egress} nud permanent")
        });
        let routes = [
            format!("route replace {PREFERRED}/24 via {first} dev {egress} metric 10"),
            format!("route replace {PREFERRED}/24 via {second} dev {spare} metric 20"),
            format!(
                "route replace {MULTIPATH}/24 nexthop via {first} dev {egress} nexthop via {second} dev {spare}"
            ),
        ];
        let up = [format!("link set {egress} up")];
        up.into_iter().chain(stations.iter().map(neighbor)).chain(routes).collect()
    }

    /// What makes it fail.
    pub fn fail(&self, failure: Failure) -> String {
        let egress = &self.egress;
        match failure {
            Failure::Link | Failure::MultipathLink => format!("link set {egress} down"),
            Failure::Route => format!("route del {PREFERRED}/24 dev {egress} metric 10"),
        }
    }

    /// What removes the routes.
    pub fn remove(&self) -> [String; 3] {
        [
            format!("route del {PREFERRED}/24 metric 10"),
            format!("route del {PREFERRED}/24 metric 20"),
            format!("route del {MULTIPATH}/24"),
        ]
    }
}

/// Addresses of each network to which packets go.
const ADDRESSES: u32 = 64;
/// A network with a less preferred route by the second link, and one with a multipath route by both.
const PREFERRED: Ipv4Addr = FAILING_NETWORKS[0];
const MULTIPATH: Ipv4Addr = FAILING_NETWORKS[1];

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

    /// Whether the routes are in use that are to fail, by the packets on each link.
    pub fn is_prepared(self, [first, second]: [usize; 2]) -> bool {
        first > 0 && (second > 0) == (self == Failure::MultipathLink)
    }

    pub fn destinations(self) -> Vec<Ipv4Addr> {
        let network = if self == Failure::MultipathLink { MULTIPATH } else { PREFERRED };
        (0..ADDRESSES).map(|host| Ipv4Addr::from_bits(network.to_bits() + host)).collect()
    }
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
