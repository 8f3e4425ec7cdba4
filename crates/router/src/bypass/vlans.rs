//! The VLANs of the router's ports. Packets that the router forwards come in and leave by the ports themselves, with a tag, so that
//! they do not meet what is set at a VLAN.

use std::io;

use netlink_sys::protocols::NETLINK_ROUTE;

use super::dump::dump;
use crate::netlink::decode::link;
use crate::netlink::event::{Link, LinkKind};

const RTM_GETLINK: u16 = 18;
/// The length of struct ifinfomsg.
const HEADER: usize = 16;

/// The names of the VLANs of these ports.
pub fn of(ports: &[String]) -> io::Result<Vec<String>> {
    let bodies = dump(NETLINK_ROUTE, RTM_GETLINK, &[0; HEADER])?;
    let links: Vec<Link> = bodies.iter().filter_map(|body| link(body)).collect();
    Ok(among(&links, ports))
}

fn among(links: &[Link], ports: &[String]) -> Vec<String> {
    let is_port = |index| links.iter().any(|link| link.index == index && ports.contains(&link.name));
    let is_of_port = |link: &&Link| matches!(link.kind, LinkKind::Vlan { parent, .. } if is_port(parent));
    links.iter().filter(is_of_port).map(|link| link.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use fullview_plane::wire::ethernet::Mac;

    use super::*;

    #[test]
    fn vlans_of_other_links_are_none_of_the_ports() {
        let link = |index, name: &str, kind| Link {
            index,
            name: name.to_owned(),
            mac: Mac::default(),
            mtu: 1500,
            mtu6: None,
            runs_inet6: true,
            up: true,
            carrier: true,
            kind,
            master: None,
        };
        let vlan = |id, parent| LinkKind::Vlan { id, parent };
        let links = [
            link(4, "eth1.5", vlan(5, 1)),
            link(1, "eth1", LinkKind::Other),
            link(2, "eth2", LinkKind::Other),
            link(3, "eth3", LinkKind::Other),
            link(5, "guests", vlan(6, 2)),
            link(6, "eth3.5", vlan(5, 3)),
            link(7, "eth9.5", vlan(5, 9)),
        ];
        let ports = ["eth1", "eth2"].map(str::to_owned);
        assert_eq!(among(&links, &ports), ["eth1.5", "guests"]);
    }
}
