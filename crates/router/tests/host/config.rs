//! Configurations whose parts contradict each other are refused, with a message that says how to fix them.

use fullview_router::host::advertisers::Advertisement;
use fullview_router::host::config::{HostConfig, StaticNeighbor, StaticNextHop, StaticRoute};
use fullview_router::host::router::StandaloneRouter;
use fullview_router::route::RouteAction;
use std::time::Duration;

use crate::support::*;

fn refused(config: &HostConfig) -> String {
    StandaloneRouter::new(Duration::ZERO, config).err().unwrap().to_string()
}

fn with_route(network: &str, action: RouteAction<StaticNextHop>) -> HostConfig {
    HostConfig { routes: vec![StaticRoute { network: address(network), action }], ..config() }
}

fn with_address(text: &str) -> HostConfig {
    let mut config = config();
    config.interfaces[0].addresses.push(address(text));
    config
}

#[test]
fn contradictions_are_refused_with_how_to_fix_them() {
    let gateway =
        |ip: &str| RouteAction::Forward(StaticNextHop::Gateway { ip: ip.parse().unwrap(), interface: None });
    assert!(
        refused(&with_route("198.51.100.0/24", gateway("192.0.2.1"))).contains("192.0.2.1 is in no network")
    );
    assert!(refused(&with_route("198.51.100.0/24", gateway("2001:db8::2"))).contains("the other family"));
    assert!(refused(&with_route("198.51.100.0/33", RouteAction::Blackhole)).contains("at most 32"));
    assert!(
        refused(&with_route("2001:2::/48", RouteAction::Forward(StaticNextHop::Link(9))))
            .contains("interface 9, but there are only 3")
    );
    assert!(refused(&with_address("224.0.0.1/24")).contains("link0: 224.0.0.1 is not a unicast address"));
    assert!(refused(&with_address("2001:db8::5/129")).contains("at most 128"));
    let neighbor = StaticNeighbor { interface: 7, ip: "10.0.0.2".parse().unwrap(), mac: STATION };
    assert!(refused(&HostConfig { neighbors: vec![neighbor], ..config() }).contains("neighbour 10.0.0.2"));
    let mut advertising = config();
    advertising.settings.advertisements = vec![(3, Advertisement::default())];
    assert!(refused(&advertising).contains("an advertisement"));
    let mut twice = config();
    twice.interfaces[2].vlan = None;
    assert!(refused(&twice).contains("link0 and link2"));
}
