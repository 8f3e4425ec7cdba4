//! The namespaces of one device, and the thread that receives for it.

use std::fs;
use std::net::Ipv4Addr;

use rustix::thread::Pid;

use super::cores::{BedCores, keep, put_last};
use super::error::RatesError;
use super::frame::{DEVICE, GENERATOR, SINK, STATION};
use super::route_table::GATEWAYS;
use crate::testbed::{Namespace, TestbedError, run};
use crate::traffic::frame::FrameSize;
use fullview_plane::wire::ethernet::Mac;

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
}

/// The hosts and the router between them, or the hosts on one cable; all of it is removed when this value is dropped.
pub struct RateBed {
    pub left: Namespace,
    pub right: Namespace,
    pub router: Option<Namespace>,
    pub ingress: String,
    pub cores: BedCores,
    pub size: FrameSize,
    /// To which packets go in turn; none if all go to the right host.
    pub destinations: Vec<Ipv4Addr>,
}

impl RateBed {
    /// Makes hosts with a router between them, whose kernel forwards if `forwards`.
    pub fn routed(BedPlan { cores, size }: BedPlan, forwards: bool) -> Result<RateBed, RatesError> {
        let [left, right, router] = ["rl", "rr", "rd"].map(Namespace::new);
        let (left, right, router) = (left?, right?, router?);
        let ingress = format!("i{}", std::process::id());
        router.within(|| set(forwards))?;
        router.batch(&cable(&ingress, &left, [DEVICE, GENERATOR]))?;
        router.batch(&cable(EGRESS, &right, [DEVICE, SINK]))?;
        [&left, &right].into_iter().try_for_each(|host| up(host, HOST))?;
        hand_over(&left, HOST)?;
        [&ingress, EGRESS].into_iter().try_for_each(|interface| up(&router, interface))?;
        router.batch(&routes(&ingress))?;
        receive_on(&router, &ingress, cores.device)?;
        Ok(RateBed { left, right, router: Some(router), ingress, cores, size, destinations: Vec::new() })
    }

    /// Makes hosts on one cable. The right host receives as a device would.
    pub fn direct(BedPlan { cores, size }: BedPlan) -> Result<RateBed, RatesError> {
        let (left, right) = (Namespace::new("rl")?, Namespace::new("rr")?);
        // The device has a unique name while its thread is looked for.
        let ingress = format!("i{}", std::process::id());
        right.batch(&cable(&ingress, &left, [SINK, GENERATOR]))?;
        up(&left, HOST)?;
        hand_over(&left, HOST)?;
        up(&right, &ingress)?;
        receive_on(&right, &ingress, cores.device)?;
        Ok(RateBed { left, right, router: None, ingress, cores, size, destinations: Vec::new() })
    }

    /// Makes hosts on one cable whose receiver stands still while the generator runs.
    pub fn blocked(plan: BedPlan) -> Result<RateBed, RatesError> {
        let bed = RateBed::direct(plan)?;
        put_last(receiving_thread(&bed.ingress)?, plan.cores.generator)?;
        Ok(bed)
    }

    /// The interface at which the right host receives.
    pub fn counted(&self) -> &str {
        if self.router.is_some() { HOST } else { &self.ingress }
    }
}

fn set(forwards: bool) -> Result<(), TestbedError> {
    let settings = [
        ("/proc/sys/net/ipv4/ip_forward", if forwards { "1" } else { "0" }),
        ("/proc/sys/net/ipv4/conf/all/rp_filter", "0"),
        ("/proc/sys/net/ipv4/conf/default/rp_filter", "0"),
    ];
    let write = |(path, value)| fs::write(path, value).map_err(|error| TestbedError::Setting { path, error });
    settings.into_iter().try_for_each(write)
}

/// No interface gets an address of IPv6: neighbour discovery would be counted.
fn cable(near: &str, host: &Namespace, macs: [Mac; 2]) -> String {
    let [ours, theirs] = macs;
    format!(
        "link add {near} address {ours} type veth peer name {HOST} address {theirs} netns {}\n\
         link set {near} addrgenmode none\n",
        host.name()
    )
}

/// A veth device polls (NAPI), and takes redirected frames, while GRO is on.
fn up(namespace: &Namespace, interface: &str) -> Result<(), RatesError> {
    run("ip", &["netns", "exec", namespace.name(), "ethtool", "-K", interface, "gro", "on"], "")?;
    Ok(namespace.batch(&format!("link set {interface} addrgenmode none\nlink set {interface} up\n"))?)
}

/// Makes a veth device hand its packets to its peer's thread. A device that may send long segments receives for its peer
/// itself, because there is nothing to merge; then the generator's core would do the work of the device under test.
pub fn hand_over(namespace: &Namespace, interface: &str) -> Result<(), RatesError> {
    Ok(run("ip", &["netns", "exec", namespace.name(), "ethtool", "-K", interface, "tso", "off"], "")?)
}

/// The receiver's neighbour entries name a station that the right host is not: its kernel drops the packets first of all.
fn routes(ingress: &str) -> String {
    format!(
        "address add 10.0.1.1/24 dev {ingress}\naddress add 10.0.2.1/24 dev {EGRESS}\n\
         neighbor add 10.0.1.2 lladdr {GENERATOR} dev {ingress} nud permanent\n\
         neighbor add {} lladdr {STATION} dev {EGRESS} nud permanent\n\
         neighbor add {} lladdr {STATION} dev {EGRESS} nud permanent\n",
        GATEWAYS[0], GATEWAYS[1]
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
        fs::read_to_string(process.path().join("comm")).is_ok_and(|comm| comm.starts_with(&start))
    };
    let found = processes
        .into_iter()
        .find(is_it)
        .and_then(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?));
    found.ok_or_else(|| RatesError::NoReceivingThread(interface.to_owned()))
}
