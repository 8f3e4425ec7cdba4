//! A test bed for forwarding in the kernel: generator, router and receiver in network namespaces, joined by veth pairs.
//!
//! ```text
//!   namespace g: g0 ── d0 :namespace d: d1 ── r0 :namespace r
//!   live frames ──▶ the forwarder under test ──▶ counted, dropped
//! ```
//!
//! Generator, router and receiver run to completion on one processor: a batch of frames is made, forwarded and received
//! before the next one, so no queue overflows and what is counted is what one processor does for all three.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::thread;

use aya::maps::Array;
use aya::programs::xdp::XdpMode;
use fullview_table::{NextHop, Rib};

use fullview_plane::bpf::{self, BpfError, XdpAttachment};
use fullview_plane::engine::{Engine, EngineError, XdpConfig, XdpInterface, XdpNextHop};
use fullview_plane::interface::SourceCheck;
use fullview_plane::view::TableReaders;
use fullview_plane::wire::ethernet::Mac;

mod ends;
mod frames;
mod namespace;

pub use ends::{MOST_PACKETS, Received};
pub use frames::{Headers, STATIONS, station_of};

use ends::Ends;
use frames::station_mac;
use namespace::Namespace;

const GENERATOR: Mac = Mac([2, 0, 0, 0, 0, 1]);
const INGRESS: Mac = Mac([2, 0, 0, 0, 0, 2]);
const EGRESS: Mac = Mac([2, 0, 0, 0, 0, 3]);
/// The longest packet of the links.
const MTU: u16 = 1500;

/// Why there is no test bed, or it does not run.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// A command that the test bed is made with.
    #[error("{program} {arguments}: {error}; the test bed needs root, iproute2 and ethtool")]
    Command {
        /// Which.
        program: &'static str,
        /// With what.
        arguments: String,
        /// What it says.
        error: String,
    },
    /// A namespace that cannot be entered.
    #[error("network namespace {name}: {error}")]
    Enter {
        /// Which.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// A device that is not there.
    #[error("device {name}: {error}")]
    Device {
        /// Which.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// A setting of the kernel.
    #[error("{path}: {error}")]
    Setting {
        /// Which.
        path: &'static str,
        /// Why.
        error: io::Error,
    },
    /// A program in the kernel.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// The forwarder under test.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A map of the test bed.
    #[error("a BPF map: {0}")]
    Map(#[from] aya::maps::MapError),
    /// A map that this process cannot write.
    #[error("a BPF map cannot be mapped: {0}")]
    Mapping(#[source] io::Error),
    /// The generator.
    #[error("no live frames: {0}; this needs Linux 5.18 or newer")]
    Generate(#[source] Box<aya::programs::ProgramError>),
}

/// Who forwards.
pub enum Forwarder {
    /// The kernel's own path.
    Kernel,
    /// A program that asks the kernel's tables by its helper.
    FibLookup,
    /// A program that sends everything to one station without any lookup.
    Redirect,
    /// Ours, by these tables.
    Engine(TableReaders),
}

/// What is at work on the router's ingress.
enum Served {
    Nothing,
    Program(#[expect(dead_code, reason = "held, because dropping it detaches")] XdpAttachment),
    Engine(#[expect(dead_code, reason = "held, because dropping it detaches")] Box<Engine>),
}

/// The namespaces, and what runs in them. Everything goes with this value.
pub struct Testbed {
    served: Served,
    ends: Ends,
    _receiver: XdpAttachment,
    generator: Namespace,
    router: Namespace,
    _receiving: Namespace,
}

/// Settings of the router's kernel.
const SETTINGS: [(&str, &str); 5] = [
    ("/proc/sys/net/ipv4/ip_forward", "1"),
    ("/proc/sys/net/ipv4/conf/all/rp_filter", "0"),
    ("/proc/sys/net/ipv4/conf/default/rp_filter", "0"),
    ("/proc/sys/net/ipv6/conf/all/forwarding", "1"),
    ("/proc/sys/net/ipv6/conf/default/accept_dad", "0"),
];

impl Testbed {
    /// Makes namespaces, links and neighbours; the router has no routes but those of its links.
    pub fn new() -> Result<Testbed, TestbedError> {
        let (generator, router, receiving) =
            (Namespace::new("g")?, Namespace::new("d")?, Namespace::new("r")?);
        router.within(|| {
            SETTINGS.iter().try_for_each(|(path, value)| {
                fs::write(path, value).map_err(|error| TestbedError::Setting { path, error })
            })
        })?;
        let (names, to) = ((generator.name(), receiving.name()), router.name());
        generator.batch(&format!(
            "link add g0 address {GENERATOR} type veth peer name d0 address {INGRESS} netns {to}\n"
        ))?;
        router.batch(&format!("link add d1 address {EGRESS} type veth peer name r0 netns {}\n", names.1))?;
        generator.batch("link set g0 up\n")?;
        receiving.batch("link set r0 up\n")?;
        router.batch(&router_links())?;
        // Frames that are redirected to a veth device are taken only if its peer polls, which this makes it do.
        namespace::run("ip", &["netns", "exec", to, "ethtool", "-K", "d0", "gro", "on"], "")?;
        let (mut ends, device) = (Ends::load()?, receiving.device("r0")?);
        let receiver = receiving.within(|| ends.receive(device))?;
        Ok(Testbed {
            served: Served::Nothing,
            ends,
            _receiver: receiver,
            generator,
            router,
            _receiving: receiving,
        })
    }

    /// Gives the router's kernel these routes, each by way of its next hop's station. Takes seconds for a large table.
    pub fn route<A: Headers>(&self, rib: &Rib<A>) -> Result<(), TestbedError> {
        let mut lines = String::new();
        for route in rib.iter() {
            let station = A::station(station_of(route.next_hop));
            let _ = writeln!(lines, "route replace {} via {} dev d1", route.prefix, station.to_ip());
        }
        // A table may hold what a kernel refuses, such as multicast prefixes; nothing is sent there.
        namespace::run("ip", &["-n", self.router.name(), "-force", "-batch", "-"], &lines).or_else(|error| {
            match error {
                TestbedError::Command { .. } => Ok(()),
                other => Err(other),
            }
        })
    }

    /// Has this forwarder at work, and no other.
    pub fn serve(&mut self, forwarder: Forwarder) -> Result<(), TestbedError> {
        self.served = Served::Nothing;
        let [ingress, egress] = [self.router.device("d0")?, self.router.device("d1")?];
        let Testbed { router, ends, .. } = self;
        self.served = match forwarder {
            Forwarder::Kernel => Served::Nothing,
            Forwarder::FibLookup => Served::Program(router.within(|| ends.forward("fib_lookup", ingress))?),
            Forwarder::Redirect => {
                ends.set_only_way(egress)?;
                Served::Program(router.within(|| ends.forward("redirect", ingress))?)
            }
            Forwarder::Engine(tables) => {
                let plan = plan(ingress, egress);
                Served::Engine(Box::new(router.within(|| engine(ingress, &plan, tables))?))
            }
        };
        Ok(())
    }

    /// From now on packets go to these destinations in turn.
    pub fn send_to<A: Headers>(&mut self, destinations: &[A]) -> Result<(), TestbedError> {
        let device = self.generator.device("g0")?;
        self.ends.prepare(device, destinations);
        Ok(())
    }

    /// Sends so many frames, while `watch` looks on and may end it.
    pub fn run<T: Send>(&self, frames: u32, watch: impl FnOnce(&Watch<'_>) -> T) -> Result<T, TestbedError> {
        thread::scope(|scope| {
            let sender = scope.spawn(|| self.generator.within(|| self.ends.generate(frames)));
            let watch_result = watch(&Watch { ends: &self.ends, sender: &sender });
            sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(watch_result)
        })
    }

    /// What has been received since the test bed was made.
    pub fn received(&self) -> Received {
        self.ends.received()
    }

    /// Sends each of the first `count` packets of the sequence once and says to which stations they went, by their
    /// place in it; 0 for those that did not arrive.
    pub fn stations(&self, count: u32) -> Result<Vec<u16>, TestbedError> {
        self.ends.record(true);
        let sent = self.run(count, |_| ());
        self.ends.record(false);
        sent?;
        Ok((0..count as usize).map(|packet| self.ends.station(packet)).collect())
    }
}

/// A run under way.
pub struct Watch<'r> {
    ends: &'r Ends,
    sender: &'r thread::ScopedJoinHandle<'r, Result<(), TestbedError>>,
}

impl Watch<'_> {
    /// What has been received since the test bed was made.
    pub fn received(&self) -> Received {
        self.ends.received()
    }

    /// Whether frames are still sent.
    pub fn is_running(&self) -> bool {
        !self.sender.is_finished()
    }

    /// Ends the run early.
    pub fn stop(&self) {
        self.ends.stop();
    }
}

fn router_links() -> String {
    let mut lines = String::from("link set d0 up\nlink set d1 up\naddress add 192.0.2.254/24 dev d1\n");
    lines.push_str("address add 2001:db8:1::ffff/64 dev d1 nodad\n");
    for number in 1..=STATIONS {
        let (inet, inet6) = (u32::station(number), u128::station(number));
        for addr in [
            fullview_table::Address::to_ip(inet).to_string(),
            fullview_table::Address::to_ip(inet6).to_string(),
        ] {
            let _ = writeln!(
                lines,
                "neighbor replace {addr} lladdr {} dev d1 nud permanent",
                station_mac(number)
            );
        }
    }
    lines
}

/// Every next hop to its station.
fn plan(ingress: u32, egress: u32) -> XdpConfig {
    let ways = (1..=NextHop::MAX).map(NextHop).map(|hop| {
        let destination = station_mac(station_of(hop));
        let way = XdpNextHop::Neighbor {
            interface: 1,
            ifindex: egress,
            vlan: 0,
            source: EGRESS,
            destination,
            mtu: MTU,
        };
        (hop, way)
    });
    let ingress = XdpInterface {
        number: 0,
        ifindex: ingress,
        vlan: 0,
        mac: INGRESS,
        inet: true,
        inet6: true,
        table: 0,
        source_check: SourceCheck::Off,
    };
    XdpConfig { interfaces: vec![ingress], next_hops: ways.collect(), flow_seed: 0 }
}

fn engine(ingress: u32, plan: &XdpConfig, tables: TableReaders) -> Result<Engine, TestbedError> {
    let mut engine = Engine::load()?;
    engine.attach(ingress, XdpMode::Driver)?;
    engine.publish(plan, vec![tables])?;
    Ok(engine)
}

impl Ends {
    /// Has one of the forwarders that are not ours at work on a device.
    fn forward(&mut self, program: &'static str, device: u32) -> Result<XdpAttachment, TestbedError> {
        Ok(bpf::attach(self.loaded().xdp(program)?, device, XdpMode::Driver)?)
    }

    /// Where the forwarder without lookup sends everything: to the first station.
    fn set_only_way(&mut self, egress: u32) -> Result<(), TestbedError> {
        let macs = [station_mac(1).0, EGRESS.0].concat();
        let [first, second, third] =
            [0, 4, 8].map(|at| macs[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes)));
        let missing = self.loaded().missing_map("only_way");
        let map = self.loaded().ebpf.map_mut("only_way").ok_or(missing)?;
        Ok(Array::<_, [u32; 4]>::try_from(map)?.set(0, [first, second, third, egress], 0)?)
    }
}
