//! Links, their addresses and their neighbours.

use std::net::IpAddr;

use netlink_packet_core::{Parseable, ParseableParametrized, parse_u16_be};
use netlink_packet_route::address::{AddressAttribute, AddressHeader};
use netlink_packet_route::link::{AfSpecInet6, InfoVlan, InfoVrf, LinkAttribute, LinkFlags, LinkHeader};
use netlink_packet_route::neighbour::{NeighbourFlags, NeighbourHeader};

use fullview_plane::interface::InterfaceAddress;
use fullview_plane::wire::ethernet::Mac;

use crate::netlink::event::{AssignedAddress, Link, LinkKind, LinkNeighbor, NeighborState};
use crate::netlink::uapi;
use crate::route::LinkIndex;

use super::attribute::{Attribute, Attributes, attributes, find, find_value, ip, name, nested};

const LINK_HEADER: usize = 16;
const ADDRESS_HEADER: usize = 8;
const NEIGHBOR_HEADER: usize = 12;

/// The number of the link that a message is about.
pub(super) fn link_index(body: &[u8]) -> Option<LinkIndex> {
    LinkHeader::parse(body).ok().map(|header| header.index)
}

/// `struct ifinfomsg`, then attributes.
pub(crate) fn link(body: &[u8]) -> Option<Link> {
    let header = LinkHeader::parse(body).ok()?;
    let attributes = attributes(body, LINK_HEADER)?;
    let number = |kind| {
        let attribute = find(&attributes, kind)?;
        match LinkAttribute::parse_with_param(&attribute, header.interface_family).ok()? {
            LinkAttribute::Mtu(number) | LinkAttribute::Link(number) | LinkAttribute::Controller(number) => {
                Some(number)
            }
            _ => None,
        }
    };
    let mtu = number(uapi::IFLA_MTU)?;
    let settings6 = settings6(&attributes);
    let kind = link_kind(&attributes, || parent(&attributes, number));
    Some(Link {
        index: header.index,
        name: find_value(&attributes, uapi::IFLA_IFNAME).map(name)?,
        mac: find_value(&attributes, uapi::IFLA_ADDRESS).and_then(mac).unwrap_or_default(),
        mtu,
        mtu6: settings6.as_ref().and_then(|settings| settings.mtu6).filter(|mtu6| *mtu6 < mtu),
        runs_inet6: settings6.is_none_or(|settings| settings.runs),
        up: header.flags.contains(LinkFlags::Up),
        carrier: header.flags.contains(LinkFlags::LowerUp),
        kind: kind.unwrap_or(LinkKind::Other),
        master: number(uapi::IFLA_MASTER),
    })
}

/// The link below. A link that was moved here from another namespace may have left that one behind: the number then
/// belongs to the other namespace, and may be that of a strange link here.
fn parent<'a>(attributes: &impl Attributes<'a>, number: impl Fn(u16) -> Option<u32>) -> Option<LinkIndex> {
    let is_elsewhere = find(attributes, uapi::IFLA_LINK_NETNSID).is_some();
    number(uapi::IFLA_LINK).filter(|_| !is_elsewhere)
}

/// The settings of IPv6.
struct Inet6Settings {
    runs: bool,
    mtu6: Option<u32>,
}

/// `None` if the message lists the settings of no family. A link that lacks those of IPv6 has no IPv6: its MTU is too small.
fn settings6<'a>(attributes: &impl Attributes<'a>) -> Option<Inet6Settings> {
    let families = nested(find_value(attributes, uapi::IFLA_AF_SPEC)?);
    let none = Inet6Settings { runs: false, mtu6: None };
    let Some(inet6) = find_value(&families, uapi::AF_INET6.into()) else { return Some(none) };
    let settings = find(&nested(inet6), uapi::IFLA_INET6_CONF)?;
    match AfSpecInet6::parse(&settings).ok()? {
        AfSpecInet6::DevConf(settings) => {
            Some(Inet6Settings { runs: settings.disable_ipv6 == 0, mtu6: u32::try_from(settings.mtu6).ok() })
        }
        _ => None,
    }
}

/// A provider's VLAN (802.1ad) is not a VLAN that the forwarding path writes, nor is one whose tags have priorities. Nested attributes are parsed one by one,
/// so that a part the library does not know (the port of a bond, say) does not hide that this is a VLAN.
fn link_kind<'a>(
    attributes: &impl Attributes<'a>,
    parent: impl FnOnce() -> Option<LinkIndex>,
) -> Option<LinkKind> {
    let info = nested(find_value(attributes, uapi::IFLA_LINKINFO)?);
    let mut data = nested(find_value(&info, uapi::IFLA_INFO_DATA)?);
    match name(find_value(&info, uapi::IFLA_INFO_KIND)?).as_str() {
        "vlan" => Some(LinkKind::Vlan { id: dot1q_id(&data)?, parent: parent()? }),
        "vrf" => data.find_map(vrf_table).map(|table| LinkKind::Vrf { table }),
        _ => None,
    }
}

fn vrf_table(attribute: Attribute<'_>) -> Option<u32> {
    match InfoVrf::parse(&attribute).ok()? {
        InfoVrf::TableId(table) => Some(table),
        _ => None,
    }
}

/// The library would take any protocol that it does not know for 802.1Q, so the number itself is compared. `None` for a VLAN that
/// maps priorities of packets to those of tags: the forwarding path writes the priority 0.
fn dot1q_id<'a>(data: &impl Attributes<'a>) -> Option<u16> {
    const DOT1Q: u16 = 0x8100;
    let protocol = parse_u16_be(find_value(data, uapi::IFLA_VLAN_PROTOCOL)?).ok()?;
    let id = |attribute: Attribute<'_>| match InfoVlan::parse(&attribute).ok()? {
        InfoVlan::Id(id) => Some(id),
        _ => None,
    };
    let has_priorities = find(data, uapi::IFLA_VLAN_EGRESS_QOS).is_some();
    data.clone().find_map(id).filter(|_| protocol == DOT1Q && !has_priorities)
}

/// `struct ifaddrmsg`, then attributes. On a point-to-point link `IFA_LOCAL` is this host's address, and `IFA_ADDRESS` the peer's.
/// Peers do not tell IPv6 addresses of a link apart.
pub(super) fn address(body: &[u8]) -> Option<(LinkIndex, AssignedAddress)> {
    let header = AddressHeader::parse(body).ok()?;
    let (mut local, mut address) = (None, None);
    for attribute in attributes(body, ADDRESS_HEADER)? {
        match AddressAttribute::parse(&attribute) {
            Ok(AddressAttribute::Local(ip)) => local = Some(ip),
            Ok(AddressAttribute::Address(ip)) => address = Some(ip),
            _ => {}
        }
    }
    let own = InterfaceAddress { ip: local.or(address)?, len: header.prefix_len };
    let peer = match address {
        Some(IpAddr::V4(peer)) if IpAddr::V4(peer) != own.ip => Some(peer),
        _ => None,
    };
    Some((header.index, AssignedAddress { own, peer }))
}

/// `struct ndmsg`, then attributes; `None` within for an address that the kernel answers for as a proxy.
pub(super) fn neighbor(body: &[u8]) -> Option<Option<LinkNeighbor>> {
    let header = NeighbourHeader::parse(body).ok()?;
    let attributes = attributes(body, NEIGHBOR_HEADER)?;
    let neighbor = LinkNeighbor {
        link: header.ifindex,
        address: find_value(&attributes, uapi::NDA_DST).and_then(ip)?,
        mac: find_value(&attributes, uapi::NDA_LLADDR).and_then(mac),
        state: NeighborState(header.state.into()),
    };
    Some((!header.flags.contains(NeighbourFlags::Proxy)).then_some(neighbor))
}

fn mac(value: &[u8]) -> Option<Mac> {
    value.try_into().ok().map(Mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let len = 4 + value.len();
        let mut bytes = [&(len as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
        bytes.resize(len.next_multiple_of(4), 0);
        bytes
    }

    /// A link 7 named `eth0.5`, up and with a carrier, with these attributes besides.
    fn read(attributes: &[Vec<u8>]) -> Link {
        let header = [&[0, 0, 1, 0, 7, 0, 0, 0][..], &0x1_0001u32.to_ne_bytes(), &[0; 4]].concat();
        let mtu = attribute(uapi::IFLA_MTU, &1500u32.to_ne_bytes());
        let name = attribute(uapi::IFLA_IFNAME, b"eth0.5\0");
        link(&[header, mtu, name, attributes.concat()].concat()).unwrap()
    }

    #[test]
    fn an_ipv4_address_may_have_a_peer() {
        const IFA_ADDRESS: u16 = 1;
        const IFA_LOCAL: u16 = 2;
        let (own, other) = (attribute(IFA_LOCAL, &[10, 0, 0, 1]), [10, 1, 0, 2]);
        let read = |to: [u8; 4]| {
            let header = [uapi::AF_INET, 32, 0, 0, 7, 0, 0, 0];
            address(&[&header[..], &attribute(IFA_ADDRESS, &to), &own].concat()).unwrap()
        };
        let address = InterfaceAddress { ip: [10, 0, 0, 1].into(), len: 32 };
        assert_eq!(read([10, 0, 0, 1]), (7, address.into()));
        assert_eq!(read(other), (7, AssignedAddress { own: address, peer: Some(other.into()) }));
    }

    #[test]
    fn a_vlan_is_known_beside_parts_that_are_not() {
        const INFO_PORT_DATA: u16 = 5;
        const VLAN_ID: u16 = 1;
        let vlan = |protocol: [u8; 2], more: &[u8]| {
            let id = attribute(VLAN_ID, &5u16.to_ne_bytes());
            let part = attribute(99, &[1]);
            let data = [&id, &*attribute(uapi::IFLA_VLAN_PROTOCOL, &protocol), more, &part].concat();
            let info = [
                attribute(uapi::IFLA_INFO_KIND, b"vlan\0"),
                attribute(uapi::IFLA_INFO_DATA, &data),
                attribute(INFO_PORT_DATA, &[9, 0, 1, 0, 1]),
            ];
            let parent = attribute(uapi::IFLA_LINK, &2u32.to_ne_bytes());
            read(&[parent, attribute(uapi::IFLA_LINKINFO, &info.concat())]).kind
        };
        assert_eq!(vlan([0x81, 0x00], &[]), LinkKind::Vlan { id: 5, parent: 2 });
        assert_eq!(vlan([0x88, 0xa8], &[]), LinkKind::Other, "a provider's VLAN");
        assert_eq!(vlan([0x91, 0x00], &[]), LinkKind::Other, "a protocol that the library takes for 802.1Q");
        let mapping = attribute(1, &[6u32.to_ne_bytes(), 5u32.to_ne_bytes()].concat());
        let priorities = attribute(uapi::IFLA_VLAN_EGRESS_QOS, &mapping);
        assert_eq!(vlan([0x81, 0x00], &priorities), LinkKind::Other, "tags with priorities");
    }

    /// Namespace 0 has a link 2 as this one has.
    #[test]
    fn a_vlan_on_a_link_of_another_namespace_is_no_vlan_of_a_port() {
        let info = |attributes: &[Vec<u8>]| attribute(uapi::IFLA_LINKINFO, &attributes.concat());
        let id = attribute(1, &5u16.to_ne_bytes());
        let data = [id, attribute(uapi::IFLA_VLAN_PROTOCOL, &[0x81, 0x00])].concat();
        let vlan =
            info(&[attribute(uapi::IFLA_INFO_KIND, b"vlan\0"), attribute(uapi::IFLA_INFO_DATA, &data)]);
        let parent = attribute(uapi::IFLA_LINK, &2u32.to_ne_bytes());
        let elsewhere = attribute(uapi::IFLA_LINK_NETNSID, &0i32.to_ne_bytes());
        assert_eq!(read(&[parent.clone(), vlan.clone()]).kind, LinkKind::Vlan { id: 5, parent: 2 });
        assert_eq!(read(&[parent, vlan, elsewhere]).kind, LinkKind::Other);
    }

    #[test]
    fn ipv6_may_have_a_smaller_mtu_and_settings_of_any_length() {
        /// The first byte of DEVCONF_DISABLE_IPV6 (linux/ipv6.h), and an MTU with which it is set.
        const DISABLE_IPV6: usize = 4 * 26;
        const DISABLED: u32 = 1499;
        let settings = |len: usize, mtu: u32| {
            let mut values = vec![0; len];
            if let Some(disable) = values.get_mut(DISABLE_IPV6) {
                *disable = u8::from(mtu == DISABLED);
            }
            values[8..12].copy_from_slice(&mtu.to_ne_bytes());
            let inet6 = attribute(uapi::AF_INET6.into(), &attribute(uapi::IFLA_INET6_CONF, &values));
            read(&[attribute(uapi::IFLA_AF_SPEC, &inet6)])
        };
        for len in [12, 200, 1000] {
            assert_eq!(
                (settings(len, 1400).mtu6, settings(len, 1400).runs_inet6),
                (Some(1400), true),
                "{len} bytes"
            );
        }
        assert!(!settings(200, DISABLED).runs_inet6);
        assert!(!read(&[attribute(uapi::IFLA_AF_SPEC, &attribute(2, &[0; 4]))]).runs_inet6, "IPv4 only");
        assert!(read(&[]).runs_inet6, "not known");
        let link = settings(200, 1500);
        assert_eq!(
            (link.index, link.name.as_str(), link.mtu6, link.up, link.carrier),
            (7, "eth0.5", None, true, true)
        );
    }
}
