//! The device under test: the engine and its configuration.

use aya::TestRun;
use aya::programs::{SchedClassifier, TestRunOptions, Xdp};
use fullview_plane::engine::{Engine, XdpConfig, XdpCounters, XdpInterface, XdpNextHop, XdpReason};
use fullview_plane::flow_hash::FlowHash;
use fullview_plane::interface::SourceCheck;
use fullview_plane::view::TableReaders;
use fullview_plane::wire::ethernet::Mac;
use fullview_table::fib::registry::{self, Registered};
use fullview_table::{NextHop, Rib};
use fullview_testnet::may_load_programs;

use super::frames::OWN;

/// The ingress device of a test run: loopback.
pub const DEVICE: u32 = 1;

/// What became of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Became {
    Dropped,
    Passed(Vec<u8>),
    Forwarded(Vec<u8>),
}

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    Xdp,
    /// At XDP, by the program for frames in several buffers.
    MultiBufferXdp,
    Tcx,
}

/// Runs a test at each hook, if this machine can.
pub fn at_each_hook(test: impl Fn(Hook)) {
    if may_load_programs() {
        [Hook::Xdp, Hook::MultiBufferXdp, Hook::Tcx].into_iter().for_each(test);
    }
}

/// The program of an engine for a hook.
pub enum Program<'e> {
    Xdp(&'e Xdp),
    Tcx(&'e SchedClassifier),
}

impl Hook {
    pub fn program(self, engine: &mut Engine) -> Program<'_> {
        match self {
            Hook::Xdp => Program::Xdp(engine.program().unwrap()),
            Hook::MultiBufferXdp => Program::Xdp(engine.multi_buffer_program().unwrap()),
            Hook::Tcx => Program::Tcx(engine.skb_program().unwrap()),
        }
    }

    /// The actions of the hook: to drop, to pass, to redirect.
    fn actions(self) -> [i32; 3] {
        match self {
            Hook::Xdp | Hook::MultiBufferXdp => [1, 2, 4],
            Hook::Tcx => [2, -1, 7],
        }
    }

    /// What a test run shows of a frame that leaves with this tag: at tcx, tags are beside the frames.
    pub fn shows(self, untagged: &[u8], tag: [u8; 4]) -> Vec<u8> {
        match self {
            Hook::Xdp | Hook::MultiBufferXdp => [&untagged[..12], &tag, &untagged[12..]].concat(),
            Hook::Tcx => untagged.to_vec(),
        }
    }
}

/// Runs a program on one frame.
pub fn run(program: &Program<'_>, frame: &[u8]) -> Became {
    let mut out = vec![0; 1 << 14];
    let options =
        TestRunOptions { data_in: Some(frame), data_out: Some(&mut out), ..TestRunOptions::default() };
    let (hook, result) = match program {
        Program::Xdp(program) => (Hook::Xdp, program.test_run(options).unwrap()),
        Program::Tcx(program) => (Hook::Tcx, program.test_run(options).unwrap()),
    };
    let out = out[..result.data_size_out as usize].to_vec();
    let [drop, pass, redirect] = hook.actions();
    match result.return_value as i32 {
        action if action == drop => Became::Dropped,
        action if action == pass => Became::Passed(out),
        action if action == redirect => Became::Forwarded(out),
        other => panic!("the program returns {other}"),
    }
}

/// The MAC address of a next hop.
pub fn station(hop: NextHop) -> [u8; 6] {
    let [high, low] = hop.0.to_be_bytes();
    [6, 0, 0, 0, high, low]
}

pub fn neighbor(hop: NextHop) -> XdpNextHop {
    let (source, destination) = (Mac(OWN), Mac(station(hop)));
    XdpNextHop::Neighbor {
        interface: 0,
        ifindex: DEVICE,
        vlan: 0,
        source,
        destination,
        mtu: 1500,
        mtu6: 1500,
    }
}

/// Forwards untagged frames of both families to neighbours at the first next hops.
pub fn plan(hops: u16) -> XdpConfig {
    let ingress = XdpInterface {
        number: 0,
        ifindex: DEVICE,
        vlan: 0,
        mac: Mac(OWN),
        inet: true,
        inet6: true,
        table: 0,
        source_check: SourceCheck::Off,
    };
    let flow_hash = FlowHash { seed: 7, ..FlowHash::default() };
    let ways = (1..=hops).map(NextHop).map(|hop| (hop, neighbor(hop)));
    XdpConfig { interfaces: vec![ingress], next_hops: ways.collect(), flow_hash, ..XdpConfig::default() }
}

pub fn tables(inet: &Rib<u32>, inet6: &Rib<u128>) -> TableReaders {
    fn compiled<A: Registered>(name: &str, rib: &Rib<A>) -> std::sync::Arc<dyn fullview_table::fib::Fib<A>> {
        registry::find::<A>(name).unwrap().compile(rib).unwrap().fib()
    }
    TableReaders::fixed(compiled("dir18", inet), compiled("btree6", inet6))
}

/// The counters of all processors.
pub fn count(engine: &Engine) -> XdpCounters {
    let mut all = XdpCounters::default();
    engine.counters().unwrap().iter().for_each(|processor| all.add(processor));
    all
}

/// How the counters of reasons have changed.
pub fn since(before: &XdpCounters, after: &XdpCounters) -> Vec<(XdpReason, u64)> {
    let change = |reason| (reason, after.of(reason) - before.of(reason));
    XdpReason::ALL.into_iter().map(change).filter(|(_, count)| *count > 0).collect()
}

/// An engine with this configuration and these tables.
pub fn engine(plan: &XdpConfig, tables: TableReaders) -> Engine {
    let mut engine = Engine::load().unwrap();
    engine.publish(plan, vec![tables]).unwrap();
    engine
}
