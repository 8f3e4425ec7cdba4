//! The interfaces of a router without a kernel: its ports, and VLANs of them.

use std::collections::HashSet;
use std::net::IpAddr;

use fullview_plane::adjacency::MAX_MTU;
use fullview_plane::interface::InterfaceAddress;

use super::table_number::table_number;
use crate::config::error::{PlanError, ensure_plan};
use crate::config::sections::{InterfaceSection, RouterConfig};
use crate::options::plan::{PlannedInterface, port_link, vlan_link};
use crate::route::MAIN_TABLE;

const ETHERNET_MTU: u32 = 1500;
/// Every link carries packets of this length (RFC 791 and RFC 8200).
const MIN_MTU: u32 = 68;
const MIN_MTU6: u32 = 1280;

/// Plans the ports in the order of `router.interfaces`, then the VLANs in the order of their names.
pub fn plan(config: &RouterConfig) -> Result<Vec<PlannedInterface>, PlanError> {
    let names = &config.router.interfaces;
    let vlans = config.interface.keys().filter(|name| !names.contains(name));
    let interfaces: Vec<PlannedInterface> =
        names.iter().chain(vlans).map(|name| interface(config, name)).collect::<Result<_, _>>()?;
    let mut taken = HashSet::new();
    for interface in &interfaces {
        for own in &interface.addresses {
            let is_link_local = matches!(own.ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
            let is_free = is_link_local || taken.insert((interface.table, own.ip));
            let (name, ip) = (&interface.name, own.ip);
            ensure_plan!(is_free, "interface.{name}.address: another interface has {ip} already");
        }
    }
    Ok(interfaces)
}

fn interface(config: &RouterConfig, name: &str) -> Result<PlannedInterface, PlanError> {
    let section = config.interface.get(name).cloned().unwrap_or_default();
    let (port, vlan) = port_and_vlan(&config.router.interfaces, name)?;
    let parent = &config.router.interfaces[usize::from(port)];
    let parent_mtu = vlan.and_then(|_| config.interface.get(parent)?.mtu);
    let mtu = mtu(name, &section, parent_mtu)?;
    let table = table_number(section.table.unwrap_or(MAIN_TABLE), &format!("interface.{name}.table"))?;
    let addresses: Vec<_> = section.address.iter().map(|own| own.0).collect();
    addresses.iter().try_for_each(|own| check_address(name, own))?;
    let link = vlan.map_or(port_link(port), |vlan| vlan_link(port, vlan));
    Ok(PlannedInterface { name: name.to_owned(), link, port, vlan, mtu, table, addresses })
}

/// The number of the port of an interface, and its VLAN if it is one.
fn port_and_vlan(ports: &[String], name: &str) -> Result<(u16, Option<u16>), PlanError> {
    let number = |name: &str| ports.iter().position(|port| port == name).map(|place| place as u16);
    if let Some(port) = number(name) {
        return Ok((port, None));
    }
    let vlan = vlan_of(name).and_then(|(parent, vlan)| Some((number(parent)?, Some(vlan))));
    vlan.ok_or_else(|| {
        PlanError::new(format!(
            "interface.{name}: it is neither one of router.interfaces nor a VLAN of one (NAME.1 to NAME.4094)"
        ))
    })
}

/// The port and the number of a VLAN, as in `tap0.100`.
fn vlan_of(name: &str) -> Option<(&str, u16)> {
    let (parent, number) = name.rsplit_once('.')?;
    // Only one way to write the number is accepted: otherwise two sections could be one interface.
    let vlan =
        number.parse().ok().filter(|vlan: &u16| (1..=4094).contains(vlan) && vlan.to_string() == number)?;
    Some((parent, vlan))
}

fn mtu(name: &str, section: &InterfaceSection, parent: Option<u32>) -> Result<u32, PlanError> {
    let mtu = section.mtu.or(parent).unwrap_or(ETHERNET_MTU);
    let has_inet6 = section.address.iter().any(|own| own.0.ip.is_ipv6());
    let min = if has_inet6 { MIN_MTU6 } else { MIN_MTU };
    let is_possible = (min..=MAX_MTU.into()).contains(&mtu);
    ensure_plan!(is_possible, "interface.{name}.mtu: {mtu} is not possible; give {min} to {MAX_MTU}");
    Ok(mtu)
}

fn check_address(name: &str, own: &InterfaceAddress) -> Result<(), PlanError> {
    let InterfaceAddress { ip, len } = *own;
    let (is_unicast, longest) = match ip {
        IpAddr::V4(ip) => (!matches!(ip.octets()[0], 0 | 127 | 224..), 32),
        IpAddr::V6(ip) => (!(ip.is_unspecified() || ip.is_loopback() || ip.is_multicast()), 128),
    };
    ensure_plan!(is_unicast, "interface.{name}.address: {ip} is not a station's address");
    ensure_plan!(
        (1..=longest).contains(&len),
        "interface.{name}.address: {ip}/{len}: lengths go from 1 to {longest}"
    );
    let host = u32::MAX.checked_shr(len.into()).unwrap_or(0);
    let is_network = matches!(ip, IpAddr::V4(ip) if len < 31 && [0, host].contains(&(ip.to_bits() & host)));
    ensure_plan!(
        !is_network,
        "interface.{name}.address: {ip}/{len} is the address of the network or its broadcast"
    );
    Ok(())
}
