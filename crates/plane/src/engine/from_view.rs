//! Makes the configuration of the XDP engine from a view.

use fullview_table::{Family, NextHop};

use super::config::{XdpConfig, XdpInterface, XdpNextHop};
use super::rules::XdpRules;
use crate::adjacency::Adjacency;
use crate::interface::Interface;
use crate::program_verdict::XdpReason;
use crate::view::View;
use crate::wire::ethernet::Mac;

/// The device of a port, and what its driver can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpDevice {
    /// Its index in the kernel.
    pub index: u32,
    /// Whether a program on it can send received frames to other devices (`XDP_REDIRECT`).
    pub sends_redirected: bool,
    /// Whether it takes the frames that XDP programs send to it (`ndo_xdp_xmit`); others are lost in it.
    pub takes_redirected: bool,
    /// Whether it takes such frames also if they are in several buffers.
    pub takes_multi_buffer: bool,
}

impl XdpDevice {
    /// A device whose driver can do everything.
    pub const fn able(index: u32) -> XdpDevice {
        XdpDevice { index, sends_redirected: true, takes_redirected: true, takes_multi_buffer: true }
    }
}

impl XdpConfig {
    /// The part of a view that the program implements; it passes the other packets to the kernel. `devices` are those of the
    /// ports, by port number.
    pub fn from_view(view: &View, devices: &[XdpDevice]) -> XdpConfig {
        let parts = view.parts();
        let numbered = (0..).zip(&parts.interfaces);
        let ingress = numbered.filter_map(|(number, interface)| ingress(number, interface, devices));
        let mut next_hops: Vec<_> =
            parts.adjacencies.iter().map(|(hop, to)| (hop, next_hop(to, view, devices))).collect();
        let mut groups = parts.groups.reader();
        let groups = groups.groups();
        let numbers = (0..=NextHop::MAX).map(NextHop).filter(|hop| groups.is_group(*hop));
        next_hops.extend(numbers.map(|group| (group, XdpNextHop::Group(groups.members(group).to_vec()))));
        let rules = (0..).take(parts.interfaces.len()).filter_map(|number| rules(view, number));
        let (interfaces, rules) = (ingress.collect(), rules.collect());
        let of_default_routes = parts.adjacencies.of_default_routes().collect();
        XdpConfig { interfaces, next_hops, of_default_routes, rules, flow_hash: parts.policy.flow_hash }
    }
}

fn ingress(number: u16, interface: &Interface, devices: &[XdpDevice]) -> Option<XdpInterface> {
    let device = device(interface, devices)?;
    let forwards = interface.up && device.sends_redirected;
    Some(XdpInterface {
        number,
        ifindex: device.index,
        vlan: interface.vlan.unwrap_or(0),
        mac: interface.mac,
        inet: forwards && interface.forwards_inet,
        inet6: forwards && interface.forwards_inet6,
        table: interface.table,
        source_check: interface.source_check,
    })
}

/// The rules of an interface, if it has any.
fn rules(view: &View, number: u16) -> Option<XdpRules> {
    let [inet, inet6] = [Family::Inet, Family::Inet6].map(|family| view.rules(number, family));
    (!inet.is_empty() || !inet6.is_empty()).then(|| XdpRules::new(number, inet, inet6))
}

fn next_hop(to: Adjacency, view: &View, devices: &[XdpDevice]) -> XdpNextHop {
    match to {
        Adjacency::Neighbor { interface, mac } => {
            let out = view.interface(interface).filter(|interface| interface.up);
            out.and_then(|out| neighbor((interface, out), mac, devices))
                .unwrap_or(XdpNextHop::Unresolved { interface })
        }
        Adjacency::Glean { interface } => XdpNextHop::Unresolved { interface },
        Adjacency::Local => XdpNextHop::Pass(XdpReason::Local),
        Adjacency::Broadcast => XdpNextHop::Pass(XdpReason::Broadcast),
        Adjacency::Unreachable | Adjacency::Prohibit => XdpNextHop::Pass(XdpReason::Discarded),
        Adjacency::Blackhole => XdpNextHop::Blackhole,
    }
}

fn neighbor((number, out): (u16, &Interface), mac: Mac, devices: &[XdpDevice]) -> Option<XdpNextHop> {
    let device = device(out, devices)?;
    let [mtu, mtu6] = [Family::Inet, Family::Inet6].map(|family| out.mtu_of(family));
    let neighbor = XdpNextHop::Neighbor {
        interface: number,
        ifindex: device.index,
        vlan: out.vlan.unwrap_or(0),
        source: out.mac,
        destination: mac,
        mtu: mtu.try_into().unwrap_or(u16::MAX),
        mtu6: mtu6.try_into().unwrap_or(u16::MAX),
    };
    Some(match device {
        XdpDevice { takes_redirected: false, .. } => XdpNextHop::NoRedirect(Box::new(neighbor)),
        XdpDevice { takes_multi_buffer: false, .. } => XdpNextHop::NoMultiBuffer(Box::new(neighbor)),
        _ => neighbor,
    })
}

fn device(interface: &Interface, devices: &[XdpDevice]) -> Option<XdpDevice> {
    devices.get(usize::from(interface.port)).copied()
}
