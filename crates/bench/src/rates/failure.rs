//! What fails, and the routes that take over: two networks behind two links to the right host.

use std::net::IpAddr;

use fullview_table::Family;
use serde::{Deserialize, Serialize};

use super::bed::EGRESS;
use super::bed_addresses::{BedLink, FailingNetwork, gateways};
use super::frame::STATION;
use super::spare_link::SPARE;
use super::wide_prefix::family_of;

/// The two links of a device to the right host: names of its interfaces, and the stations behind them with their Ethernet
/// addresses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailureLinks {
    /// What fails.
    pub egress: String,
    pub spare: String,
    pub stations: Vec<(IpAddr, String)>,
    pub spare_station: IpAddr,
}

impl FailureLinks {
    /// Those of the test bed in namespaces.
    pub fn of_bed(family: Family) -> FailureLinks {
        FailureLinks {
            egress: EGRESS.into(),
            spare: SPARE.into(),
            stations: gateways(family, BedLink::Right).map(|address| (address, STATION.to_string())).into(),
            spare_station: gateways(family, BedLink::Spare)[0],
        }
    }

    /// By which station packets go until something fails.
    fn station(&self) -> IpAddr {
        self.stations.first().map_or(self.spare_station, |(address, _)| *address)
    }

    /// The networks whose routes fail, as `ip` names them.
    fn networks(&self) -> [String; 2] {
        FailingNetwork::ALL.map(|network| {
            let prefix = network.prefix(family_of(self.spare_station));
            format!("{}/{}", prefix.first, prefix.len)
        })
    }

    /// Sets up or repairs the links and routes of all failures, in lines of `ip`. An interface that goes down loses its
    /// neighbours and routes.
    pub fn repair(&self) -> Vec<String> {
        let FailureLinks { egress, spare, stations, spare_station: second } = self;
        let (first, neighbor) = (self.station(), |(address, mac): &(IpAddr, String)| {
            format!("neighbor replace {address} lladdr {mac} dev {egress} nud permanent")
        });
        let [preferred, multipath] = self.networks();
        let routes = [
            format!("route replace {preferred} via {first} dev {egress} metric 10"),
            format!("route replace {preferred} via {second} dev {spare} metric 20"),
            format!(
                "route replace {multipath} nexthop via {first} dev {egress} nexthop via {second} dev {spare}"
            ),
        ];
        let up = [format!("link set {egress} up")];
        up.into_iter().chain(stations.iter().map(neighbor)).chain(routes).collect()
    }

    /// What makes it fail.
    pub fn fail(&self, failure: Failure) -> String {
        let (egress, [preferred, _]) = (&self.egress, self.networks());
        match failure {
            Failure::Link | Failure::MultipathLink => format!("link set {egress} down"),
            Failure::Route => format!("route del {preferred} dev {egress} metric 10"),
        }
    }

    /// What removes the routes.
    pub fn remove(&self) -> [String; 3] {
        let [preferred, multipath] = self.networks();
        [
            format!("route del {preferred} metric 10"),
            format!("route del {preferred} metric 20"),
            format!("route del {multipath}"),
        ]
    }
}

/// Addresses of each network to which packets go.
const ADDRESSES: u8 = 64;

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

    pub fn destinations(self, family: Family) -> Vec<IpAddr> {
        let is_multipath = self == Failure::MultipathLink;
        let network = if is_multipath { FailingNetwork::Multipath } else { FailingNetwork::Preferred };
        let host = |number: u8| match network.prefix(family).first {
            IpAddr::V4(first) => IpAddr::from((first.to_bits() + u32::from(number)).to_be_bytes()),
            IpAddr::V6(first) => IpAddr::from((first.to_bits() + u128::from(number)).to_be_bytes()),
        };
        (0..ADDRESSES).map(host).collect()
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
