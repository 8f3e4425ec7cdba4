//! Two hosts and the router between them, or two hosts on one cable.

use std::fs;

use super::error::VethError;
use crate::settings::Offloads;
use crate::testbed::{Namespace, TestbedError, run};

/// Settings of the router's kernel.
const FORWARDING: [(&str, &str); 3] = [
    ("/proc/sys/net/ipv4/ip_forward", "1"),
    ("/proc/sys/net/ipv4/conf/all/rp_filter", "0"),
    ("/proc/sys/net/ipv4/conf/default/rp_filter", "0"),
];

/// The address of the right host.
pub const RIGHT: &str = "10.0.2.2";

/// The namespaces and cables of one variant; all of it is removed when this value is dropped.
pub struct VethBed {
    pub left: Namespace,
    pub right: Namespace,
    pub router: Option<Namespace>,
}

impl VethBed {
    /// Makes hosts with a router between them. `number` tells the beds of one process apart.
    pub fn routed(number: usize, offloads: Offloads) -> Result<VethBed, VethError> {
        let made = |role: &str| Namespace::new(&format!("v{number}{role}"));
        let (left, right, router) = (made("l")?, made("r")?, made("d")?);
        router.within(|| FORWARDING.iter().try_for_each(|(path, value)| set(path, value)))?;
        for (host, side) in [(&left, 1), (&right, 2)] {
            router.batch(&cable(host, side))?;
            host.batch(&format!("{}route add default via 10.0.{side}.1\n", host_address(side)))?;
            // Without its tag a frame of a VLAN could not be told from others by an XDP program.
            ethtool(&router, &format!("eth{side}"), &["rxvlan", "off"])?;
        }
        let bed = VethBed { left, right, router: Some(router) };
        bed.set_offloads(offloads)?;
        Ok(bed)
    }

    /// Makes hosts that share a cable.
    pub fn direct(number: usize, offloads: Offloads) -> Result<VethBed, VethError> {
        let made = |role: &str| Namespace::new(&format!("v{number}{role}"));
        let (left, right) = (made("l")?, made("r")?);
        left.batch(&format!("link add eth0 type veth peer name eth0 netns {}\n", right.name()))?;
        left.batch(&format!("{}route add 10.0.2.0/24 dev eth0\n", host_address(1)))?;
        right.batch(&format!("{}route add 10.0.1.0/24 dev eth0\n", host_address(2)))?;
        let bed = VethBed { left, right, router: None };
        bed.set_offloads(offloads)?;
        Ok(bed)
    }

    /// Runs a line in the router's namespace. `$INGRESS` and `$EGRESS` are its interfaces.
    pub fn shell(&self, line: &str) -> Result<(), TestbedError> {
        let line = format!("INGRESS=eth1 EGRESS=eth2\n{line}");
        let in_router = |router: &Namespace| {
            run("ip", &["netns", "exec", router.name(), "sh", "-ec", &line], "").map(drop)
        };
        self.router.as_ref().map_or(Ok(()), in_router)
    }

    /// As from a wire, senders finish their checksums and segments, and every receiver merges segments again.
    fn set_offloads(&self, offloads: Offloads) -> Result<(), VethError> {
        if offloads == Offloads::Default {
            return Ok(());
        }
        for host in [&self.left, &self.right] {
            ethtool(host, "eth0", &["tx", "off", "tso", "off", "gro", "on"])?;
        }
        let sides = self.router.iter().flat_map(|router| [(router, "eth1"), (router, "eth2")]);
        sides.into_iter().try_for_each(|(router, side)| ethtool(router, side, &["gro", "on"]))
    }
}

fn set(path: &'static str, value: &str) -> Result<(), TestbedError> {
    fs::write(path, value).map_err(|error| TestbedError::Setting { path, error })
}

fn cable(host: &Namespace, side: u8) -> String {
    format!(
        "link add eth{side} type veth peer name eth0 netns {}\nlink set eth{side} up\n\
         address add 10.0.{side}.1/24 dev eth{side}\n",
        host.name()
    )
}

fn host_address(side: u8) -> String {
    format!("link set lo up\nlink set eth0 up\naddress add 10.0.{side}.2/24 dev eth0\n")
}

fn ethtool(of: &Namespace, interface: &str, features: &[&str]) -> Result<(), VethError> {
    let arguments = [&["netns", "exec", of.name(), "ethtool", "-K", interface], features].concat();
    Ok(run("ip", &arguments, "")?)
}
