//! A test bed for forwarding in the kernel: generator, router and receiver in network namespaces, joined by veth pairs.
//!
//! ```text
//!   namespace g: g0 ── d0 :namespace d: d1 ── r0 :namespace r
//!   live frames ──▶ the forwarder under test ──▶ counted, dropped
//! ```
//!
//! Generator, router and receiver run to completion on one processor: a batch of frames is made, forwarded and received
//! before the next one, so no queue overflows and the counters show what one processor does for all three.

use std::fmt::Write as _;
use std::fs;
use std::thread;

use aya::programs::xdp::XdpMode;
use fullview_table::{NextHop, Rib};

use fullview_plane::bpf::XdpAttachment;
use fullview_plane::engine::{Engine, XdpConfig, XdpInterface, XdpNextHop};
use fullview_plane::interface::SourceCheck;
use fullview_plane::view::TableReaders;

mod error;
mod frames;
mod namespace;
mod programs;

pub use error::TestbedError;
pub use frames::{STATIONS, TestbedHeaders, station_of};
pub use programs::{MOST_PACKETS, Received};

use frames::{EGRESS, GENERATOR, INGRESS, station_mac};
use namespace::Namespace;
use programs::TestbedPrograms;

/// The longest packet of the links.
const MTU: u16 = 1500;

/// The forwarder under test.
pub enum Forwarder {
    /// The kernel's own path.
    Kernel,
    /// A program that looks up in the kernel's tables with `bpf_fib_lookup`.
    FibLookup,
    /// A program that sends everything to one station without any lookup.
    Redirect,
    /// The XDP engine with these tables.
    Engine(TableReaders),
}

/// The program attached to the router's ingress.
enum ActiveForwarder {
    Nothing,
    Program(#[expect(dead_code, reason = "held, because dropping it detaches")] XdpAttachment),
    Engine(#[expect(dead_code, reason = "held, because dropping it detaches")] Box<Engine>),
}

/// The namespaces and the programs in them. All of it is removed when this value is dropped.
pub struct Testbed {
    active: ActiveForwarder,
    programs: TestbedPrograms,
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
    /// Makes namespaces, links and neighbours; the router has only the routes of its links.
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
        // A veth device takes redirected frames only if its peer polls (NAPI), which GRO switches on.
        namespace::run("ip", &["netns", "exec", to, "ethtool", "-K", "d0", "gro", "on"], "")?;
        let (mut programs, device) = (TestbedPrograms::load()?, receiving.device("r0")?);
        let receiver = receiving.within(|| programs.receive(device))?;
        Ok(Testbed {
            active: ActiveForwarder::Nothing,
            programs,
            _receiver: receiver,
            generator,
            router,
            _receiving: receiving,
        })
    }

    /// Adds these routes to the router's kernel, each via its next hop's station. A large table takes seconds.
    pub fn route<A: TestbedHeaders>(&self, rib: &Rib<A>) -> Result<(), TestbedError> {
        let mut lines = String::new();
        for route in rib.iter() {
            let station = A::station(station_of(route.next_hop));
            let _ = writeln!(lines, "route replace {} via {} dev d1", route.prefix, station.to_ip());
        }
        // A table may hold prefixes that the kernel refuses, such as multicast; no packet is sent there.
        namespace::run("ip", &["-n", self.router.name(), "-force", "-batch", "-"], &lines).or_else(|error| {
            match error {
                TestbedError::Command { .. } => Ok(()),
                other => Err(other),
            }
        })
    }

    /// Attaches this forwarder in place of the one before.
    pub fn serve(&mut self, forwarder: Forwarder) -> Result<(), TestbedError> {
        self.active = ActiveForwarder::Nothing;
        let [ingress, egress] = [self.router.device("d0")?, self.router.device("d1")?];
        let Testbed { router, programs, .. } = self;
        self.active = match forwarder {
            Forwarder::Kernel => ActiveForwarder::Nothing,
            Forwarder::FibLookup => {
                ActiveForwarder::Program(router.within(|| programs.forward("fib_lookup", ingress))?)
            }
            Forwarder::Redirect => {
                programs.set_only_way(egress)?;
                ActiveForwarder::Program(router.within(|| programs.forward("redirect", ingress))?)
            }
            Forwarder::Engine(tables) => {
                let plan = plan(ingress, egress);
                ActiveForwarder::Engine(Box::new(router.within(|| engine(ingress, &plan, tables))?))
            }
        };
        Ok(())
    }

    /// Sets the destinations of the packets, which are sent to in turn.
    pub fn send_to<A: TestbedHeaders>(&mut self, destinations: &[A]) -> Result<(), TestbedError> {
        let device = self.generator.device("g0")?;
        self.programs.prepare(device, destinations);
        Ok(())
    }

    /// Sends `frames` frames, while `watch` reads the counters and may end the run.
    pub fn run<T: Send>(&self, frames: u32, watch: impl FnOnce(&Watch<'_>) -> T) -> Result<T, TestbedError> {
        thread::scope(|scope| {
            let sender = scope.spawn(|| self.generator.within(|| self.programs.generate(frames)));
            let watch_result = watch(&Watch { programs: &self.programs, sender: &sender });
            sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(watch_result)
        })
    }

    /// What has been received since the test bed was made.
    pub fn received(&self) -> Received {
        self.programs.received()
    }

    /// Sends each of the first `count` packets of the sequence once and returns to which stations they went, by their
    /// place in it; 0 for those that did not arrive.
    pub fn stations(&self, count: u32) -> Result<Vec<u16>, TestbedError> {
        self.programs.record(true);
        let sent = self.run(count, |_| ());
        self.programs.record(false);
        sent?;
        Ok((0..count as usize).map(|packet| self.programs.station(packet)).collect())
    }
}

/// A run in progress.
pub struct Watch<'r> {
    programs: &'r TestbedPrograms,
    sender: &'r thread::ScopedJoinHandle<'r, Result<(), TestbedError>>,
}

impl Watch<'_> {
    /// What has been received since the test bed was made.
    pub fn received(&self) -> Received {
        self.programs.received()
    }

    /// Whether frames are still sent.
    pub fn is_running(&self) -> bool {
        !self.sender.is_finished()
    }

    /// TestbedPrograms the run early.
    pub fn stop(&self) {
        self.programs.stop();
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

/// The engine's plan: every next hop leads to its station.
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
