//! Namespaces and links of the test bed, and the routes of its router.

use std::fmt::Write as _;
use std::fs;
use std::net::IpAddr;

use fullview_table::{Address, Rib};

use super::command::run;
use super::error::TestbedError;
use super::frames::{EGRESS, GENERATOR, INGRESS, STATIONS, TestbedHeaders, station_mac, station_of};
use super::namespace::Namespace;

/// Settings of the router's kernel.
const SETTINGS: [(&str, &str); 5] = [
    ("/proc/sys/net/ipv4/ip_forward", "1"),
    ("/proc/sys/net/ipv4/conf/all/rp_filter", "0"),
    ("/proc/sys/net/ipv4/conf/default/rp_filter", "0"),
    ("/proc/sys/net/ipv6/conf/all/forwarding", "1"),
    ("/proc/sys/net/ipv6/conf/default/accept_dad", "0"),
];

/// The router's device on the link to the receiver.
pub const TO_RECEIVER: &str = "out";
/// The receiver's devices: behind the router, and on the link without a router.
pub const BEHIND_ROUTER: &str = "r0";
pub const BESIDE_ROUTER: &str = "r1";
/// The generator's device on the link without a router.
pub const BESIDE: &str = "beside";

/// The namespaces and links, which last for a campaign because the router's kernel takes seconds to load its routes.
/// All of it is removed when this value is dropped.
pub struct Testbed {
    pub generator: Namespace,
    pub router: Namespace,
    pub receiver: Namespace,
    /// Links from the generator to the router, one for each forwarder.
    links: usize,
}

/// Indices of devices, each in its namespace.
pub struct SharedDevices {
    /// The router's device on the link to the receiver.
    pub egress: u32,
    /// The receiver's devices.
    pub receiving: [u32; 2],
    /// The generator's device on the link to the receiver.
    pub beside: u32,
    /// A device of the generator that receives nothing.
    pub idle: u32,
}

impl Testbed {
    /// Makes namespaces, links and neighbours; the router has only the routes of its links.
    pub fn new() -> Result<Testbed, TestbedError> {
        Testbed::of_namespaces(["g", "d", "r"].map(Namespace::new))
    }

    /// The same, beside others of this process, which have other numbers.
    pub fn numbered(number: usize) -> Result<Testbed, TestbedError> {
        Testbed::of_namespaces(["g", "d", "r"].map(|role| Namespace::new(&format!("{role}{number}"))))
    }

    fn of_namespaces(made: [Result<Namespace, TestbedError>; 3]) -> Result<Testbed, TestbedError> {
        let [generator, router, receiver] = made;
        let (generator, router, receiver) = (generator?, router?, receiver?);
        router.within(|| {
            SETTINGS.iter().try_for_each(|(path, value)| {
                fs::write(path, value).map_err(|error| TestbedError::Setting { path, error })
            })
        })?;
        let to = receiver.name();
        router.batch(&format!(
            "link add {TO_RECEIVER} address {EGRESS} type veth peer name {BEHIND_ROUTER} netns {to}\n"
        ))?;
        generator.batch(&format!(
            "link add {BESIDE} address {GENERATOR} type veth peer name {BESIDE_ROUTER} netns {to}\n\
             link set {BESIDE} up\nlink set lo up\n"
        ))?;
        receiver.batch(&format!("link set {BEHIND_ROUTER} up\nlink set {BESIDE_ROUTER} up\n"))?;
        router.batch(&stations())?;
        Ok(Testbed { generator, router, receiver, links: 0 })
    }

    /// The devices that all forwarders share.
    pub fn shared(&self) -> Result<SharedDevices, TestbedError> {
        Ok(SharedDevices {
            egress: self.router.device(TO_RECEIVER)?,
            receiving: [self.receiver.device(BEHIND_ROUTER)?, self.receiver.device(BESIDE_ROUTER)?],
            beside: self.generator.device(BESIDE)?,
            idle: self.generator.device("lo")?,
        })
    }

    /// The generator's device and the router's on the link of this number, which is made if it is not there.
    pub fn link(&mut self, number: usize) -> Result<[u32; 2], TestbedError> {
        while self.links <= number {
            self.add_link(self.links)?;
            self.links += 1;
        }
        Ok([self.generator.device(&format!("g{number}"))?, self.router.device(&format!("d{number}"))?])
    }

    fn add_link(&self, number: usize) -> Result<(), TestbedError> {
        let (ours, theirs, router) = (format!("g{number}"), format!("d{number}"), self.router.name());
        self.generator.batch(&format!(
            "link add {ours} address {GENERATOR} type veth peer name {theirs} address {INGRESS} netns {router}\n\
             link set {ours} up\n"
        ))?;
        self.router.batch(&format!("link set {theirs} up\n"))?;
        // A veth device takes redirected frames only if its peer polls (NAPI), which GRO switches on.
        run("ip", &["netns", "exec", router, "ethtool", "-K", &theirs, "gro", "on"], "")
    }

    /// Adds these routes to the router's kernel, each via its next hop's station. A large table takes seconds.
    pub fn route<A: TestbedHeaders>(&self, rib: &Rib<A>) -> Result<(), TestbedError> {
        let mut lines = String::new();
        for route in rib.iter() {
            let station = A::station(station_of(route.next_hop)).to_ip();
            let _ = writeln!(lines, "route replace {} via {station} dev {TO_RECEIVER}", route.prefix);
        }
        // A table may hold prefixes that the kernel refuses, such as multicast; no packet is sent there.
        run("ip", &["-n", self.router.name(), "-force", "-batch", "-"], &lines).or_else(|error| match error {
            TestbedError::Command { .. } => Ok(()),
            other => Err(other),
        })
    }
}

/// The router's addresses on the link to the receiver, and the stations there.
fn stations() -> String {
    let mut lines = format!("link set {TO_RECEIVER} up\n");
    let _ = writeln!(lines, "address add 192.0.2.254/24 dev {TO_RECEIVER}");
    let _ = writeln!(lines, "address add 2001:db8:1::ffff/64 dev {TO_RECEIVER} nodad");
    for number in 1..=STATIONS {
        let mac = station_mac(number);
        let (inet, inet6) = (u32::station(number).to_ip(), u128::station(number).to_ip());
        for addr in [IpAddr::from(inet), IpAddr::from(inet6)] {
            let _ = writeln!(lines, "neighbor replace {addr} lladdr {mac} dev {TO_RECEIVER} nud permanent");
        }
    }
    lines
}
