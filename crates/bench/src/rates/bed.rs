//! The namespaces of one device, and the thread that receives for it.

use std::fs;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use fullview_profile::begins;
use fullview_table::Family;
use rustix::thread::Pid;

use super::bed_addresses::{self, BedLink, ROUTER, gateways, link_prefix_len, station};
use super::cable::{cable, up};
use super::cores::{BedCores, keep, put_last};
use super::error::RatesError;
use super::frame::{DEVICE, GENERATOR, SINK, STATION};
use super::spare_link;
use crate::testbed::{Namespace, TestbedError, run};
use crate::traffic::frame::FrameSize;

/// The router's interface to the right host. That to the left one has a unique name, because the kernel names the receiving
/// thread for it.
pub const EGRESS: &str = "out";
/// The interface of each host.
pub const HOST: &str = "eth0";

/// What every test bed of a campaign has.
#[derive(Clone, Copy, Debug)]
pub struct BedPlan {
    pub cores: BedCores,
    /// The size of the frames that the left host sends.
    pub size: FrameSize,
    pub family: Family,
    /// Whether a second link joins the router and the right host.
    pub has_spare: bool,
}

/// The hosts and the router between them, or the hosts on one cable; all of it is removed when this value is dropped.
pub struct RateBed {
    pub left: Namespace,
    pub right: Namespace,
    pub router: Option<Namespace>,
    pub ingress: String,
    pub cores: BedCores,
    pub size: FrameSize,
    pub family: Family,
    /// To which packets go in turn; none if all go to the right host.
    pub destinations: Vec<IpAddr>,
    pub has_spare: bool,
}

impl RateBed {
    /// Makes hosts with a router between them, whose kernel forwards if `forwards`.
    pub fn routed(
        BedPlan { cores, size, family, has_spare }: BedPlan,
        forwards: bool,
    ) -> Result<RateBed, RatesError> {
        let [left, right, router] = ["rl", "rr", "rd"].map(Namespace::new);
        let (left, right, router) = (left?, right?, router?);
        let ingress = unique_interface();
        router.within(|| set(family, forwards))?;
        router.batch(&cable(&ingress, (&left, HOST), [DEVICE, GENERATOR]))?;
        router.batch(&cable(EGRESS, (&right, HOST), [DEVICE, SINK]))?;
        [&left, &right].into_iter().try_for_each(|host| up(host, HOST))?;
        hand_over(&left, HOST)?;
        [&ingress, EGRESS].into_iter().try_for_each(|interface| up(&router, interface))?;
        router.batch(&addresses(&ingress, family))?;
        receive_on(&router, &ingress, cores.device)?;
        if has_spare {
            spare_link::add(&router, &right, family)?;
        }
        let (router, destinations) = (Some(router), Vec::new());
        Ok(RateBed { left, right, router, ingress, cores, size, family, destinations, has_spare })
    }

    /// Makes hosts on one cable. The right host receives as a device would.
    pub fn direct(BedPlan { cores, size, family, .. }: BedPlan) -> Result<RateBed, RatesError> {
        let (left, right) = (Namespace::new("rl")?, Namespace::new("rr")?);
        let ingress = unique_interface();
        right.batch(&cable(&ingress, (&left, HOST), [SINK, GENERATOR]))?;
        up(&left, HOST)?;
        hand_over(&left, HOST)?;
        up(&right, &ingress)?;
        receive_on(&right, &ingress, cores.device)?;
        let (router, destinations, has_spare) = (None, Vec::new(), false);
        Ok(RateBed { left, right, router, ingress, cores, size, family, destinations, has_spare })
    }

    /// Makes hosts on one cable whose receiver stands still while the generator runs.
    pub fn blocked(plan: BedPlan) -> Result<RateBed, RatesError> {
        let bed = RateBed::direct(plan)?;
        put_last(receiving_thread(&bed.ingress)?, plan.cores.generator)?;
        Ok(bed)
    }

    /// The router's interfaces, with the variables by which a command knows them.
    pub fn interfaces(&self) -> Vec<(&'static str, &str)> {
        let both = [("INGRESS", self.ingress.as_str()), ("EGRESS", EGRESS)];
        both.into_iter().chain(self.has_spare.then_some(("SPARE", spare_link::SPARE))).collect()
    }

    /// The interface by which routes lead that are loaded beside others.
    pub fn routed_by(&self) -> &'static str {
        if self.has_spare { spare_link::SPARE } else { EGRESS }
    }

    /// The interface at which the right host receives.
    pub fn counted(&self) -> &str {
        if self.router.is_some() { HOST } else { &self.ingress }
    }
}

/// A name that no bed before had: the kernel removes the devices of a namespace some time after the namespace, and the thread
/// that receives for such a device would be taken for that of the new one.
fn unique_interface() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    interface_name(std::process::id(), MADE.fetch_add(1, Ordering::Relaxed))
}

/// Nine letters, so that the kernel keeps the whole of `napi/NAME-` in the name of the thread. Linux has at most 4,194,304
/// processes, and names are used again after 46,656 beds.
fn interface_name(process: u32, number: u32) -> String {
    let digit = |value: u32| char::from_digit(value % 36, 36).unwrap_or_default();
    let digits = |value: u32, count: u32| (0..count).rev().map(move |place| digit(value / 36_u32.pow(place)));
    std::iter::once('i').chain(digits(process, 5)).chain(digits(number, 3)).collect()
}

/// Nothing that the router sends of its own is left when packets are counted: no address is probed for, and groups are
/// reported at once. An interface that goes down keeps its addresses, as those of IPv4.
fn set(family: Family, forwards: bool) -> Result<(), TestbedError> {
    let forwards = if forwards { "1" } else { "0" };
    let settings = match family {
        Family::Inet => vec![
            ("/proc/sys/net/ipv4/ip_forward", forwards),
            ("/proc/sys/net/ipv4/conf/all/rp_filter", "0"),
            ("/proc/sys/net/ipv4/conf/default/rp_filter", "0"),
        ],
        Family::Inet6 => vec![
            ("/proc/sys/net/ipv6/conf/all/forwarding", forwards),
            ("/proc/sys/net/ipv6/conf/default/router_solicitations", "0"),
            ("/proc/sys/net/ipv6/conf/default/mldv2_unsolicited_report_interval", "1"),
            ("/proc/sys/net/ipv6/conf/default/keep_addr_on_down", "1"),
        ],
    };
    let write = |(path, value)| fs::write(path, value).map_err(|error| TestbedError::Setting { path, error });
    settings.into_iter().try_for_each(write)
}

/// Makes a veth device hand its packets to its peer's thread. A device that may send long segments receives for its peer
/// itself, because there is nothing to merge; then the generator's core would do the work of the device under test.
pub fn hand_over(namespace: &Namespace, interface: &str) -> Result<(), RatesError> {
    Ok(run("ip", &["netns", "exec", namespace.name(), "ethtool", "-K", interface, "tso", "off"], "")?)
}

/// The receiver's neighbour entries name a station that the right host is not: its kernel drops the packets first of all.
fn addresses(ingress: &str, family: Family) -> String {
    let [left, right] = [BedLink::Left, BedLink::Right].map(|link| station(family, link, ROUTER));
    let (host, len) = (station(family, BedLink::Left, bed_addresses::HOST), link_prefix_len(family));
    let stations = gateways(family, BedLink::Right)
        .map(|gateway| format!("neighbor add {gateway} lladdr {STATION} dev {EGRESS} nud permanent\n"));
    format!(
        "address add {left}/{len} dev {ingress} nodad\naddress add {right}/{len} dev {EGRESS} nodad\n\
         neighbor add {host} lladdr {GENERATOR} dev {ingress} nud permanent\n{}",
        stations.concat()
    )
}

/// Moves the receiving of an interface from the core of the sender to a thread on the device's core. Otherwise the kernel
/// would forward each packet before the call that sends it returns: the generator would be slow, and nothing lost.
pub fn receive_on(namespace: &Namespace, interface: &str, core: usize) -> Result<(), RatesError> {
    let path = format!("/sys/class/net/{interface}/threaded");
    run("ip", &["netns", "exec", namespace.name(), "tee", &path], "1")?;
    keep(Some(receiving_thread(interface)?), core)
}

fn receiving_thread(interface: &str) -> Result<Pid, RatesError> {
    let start = format!("napi/{interface}-");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_it = |process: &fs::DirEntry| {
        fs::read_to_string(process.path().join("comm")).is_ok_and(|comm| begins(&comm, &start))
    };
    let found = processes
        .into_iter()
        .find(is_it)
        .and_then(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?));
    found.ok_or_else(|| RatesError::NoReceivingThread(interface.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_thread_fits_for_every_process_and_bed() {
        for (process, number, name) in
            [(1, 0, "i00001000"), (4_194_303, 46_655, "i2hwcfzzz"), (4_194_303, 46_656, "i2hwcf000")]
        {
            assert_eq!(interface_name(process, number), name);
            assert_eq!(format!("napi/{name}-").len(), 15);
        }
    }
}
