//! Cables between network namespaces: veth pairs.

use fullview_plane::wire::ethernet::Mac;

use super::error::RatesError;
use crate::testbed::{Namespace, run};

/// No interface gets an address of IPv6: neighbour discovery would be counted.
pub fn cable(near: &str, (host, far): (&Namespace, &str), macs: [Mac; 2]) -> String {
    let [ours, theirs] = macs;
    format!(
        "link add {near} address {ours} type veth peer name {far} address {theirs} netns {}\n\
         link set {near} addrgenmode none\n",
        host.name()
    )
}

/// A veth device polls (NAPI), and takes redirected frames, while GRO is on. One that hides VLAN tags is refused by a program
/// before the kernel's stack.
pub fn up(namespace: &Namespace, interface: &str) -> Result<(), RatesError> {
    let offloads = ["gro", "on", "rxvlan", "off", "txvlan", "off"];
    let ethtool = ["netns", "exec", namespace.name(), "ethtool", "-K", interface];
    run("ip", &[&ethtool[..], &offloads].concat(), "")?;
    Ok(namespace.batch(&format!("link set {interface} addrgenmode none\nlink set {interface} up\n"))?)
}
