//! Our router without a kernel: forwarder and host, in memory.

use std::net::IpAddr;
use std::time::Duration;

use fullview_plane::burst::{Arena, Burst};
use fullview_plane::interface::{Interface, InterfaceAddress};
use fullview_router::host::RateLimit;
use fullview_router::host::config::{
    HostConfig, HostSettings, NeighborSettings, StaticNeighbor, StaticNextHop, StaticRoute,
};
use fullview_router::host::router::StandaloneRouter;
use fullview_router::route::RouteAction;

use crate::catalogue::Catalogue;
use crate::dut::{Dut, Output};
use crate::topology::{self, LINK_LENGTHS, LINK_LOCAL, ROUTER, ROUTES, SIDES, STATION, STATION_LOCAL, To};

/// The time that passes with each frame.
const STEP: Duration = Duration::from_millis(1);
/// After this time, the router sends nothing more.
const PATIENCE: Duration = Duration::from_secs(10);
const SLOTS: usize = 16;

/// A router whose clock the test sets.
pub struct Ours {
    router: StandaloneRouter,
    now: Duration,
}

impl Ours {
    pub fn new(catalogue: Catalogue) -> Ours {
        let now = Duration::from_secs(1);
        Ours {
            router: StandaloneRouter::new(now, &config(catalogue)).expect("the topology fits together"),
            now,
        }
    }

    /// Makes the router process a frame or its timers, and sorts its output by side.
    fn run(&mut self, frame: Option<(usize, &[u8])>) -> Output {
        let mut arena = Arena::new(SLOTS);
        let (mut burst, mut free, mut out) = (Burst::new(), Burst::new(), Burst::new());
        free.fill(arena.packets());
        if let Some((side, bytes)) = frame {
            let slot = free.pop().expect("there are slots");
            assert!(slot.set_frame(bytes), "the catalogue's frames fit into a slot");
            slot.port = side as u16;
            burst.fill([slot].into_iter());
        }
        self.now += STEP;
        self.router.process(self.now, &mut burst, &mut out, &mut free);
        let mut output = Output::default();
        out.iter().for_each(|packet| output.0[usize::from(packet.port)].push(packet.frame().to_vec()));
        output
    }
}

impl Dut for Ours {
    fn exchange(&mut self, side: usize, frame: &[u8]) -> Output {
        self.run(Some((side, frame)))
    }

    fn wait(&mut self, awaited: [usize; SIDES.len()]) -> Output {
        let mut output = Output::default();
        let end = self.now + PATIENCE;
        let lacks =
            |output: &Output| output.0.iter().zip(awaited).any(|(frames, count)| frames.len() < count);
        while let Some(next) = self.router.next_deadline().filter(|next| lacks(&output) && *next < end) {
            self.now = self.now.max(next);
            let more = self.run(None);
            output.0.iter_mut().zip(more.0).for_each(|(frames, more)| frames.extend(more));
        }
        output
    }
}

fn config(catalogue: Catalogue) -> HostConfig {
    let neighbors = NeighborSettings {
        retransmit: Duration::from_secs(1),
        lock: Duration::from_secs(60),
        stale: Duration::from_secs(60),
        ..NeighborSettings::default()
    };
    let (errors, errors_per_interface) = (RateLimit::NONE, RateLimit::NONE);
    let settings = HostSettings { neighbors, errors, errors_per_interface, ..HostSettings::default() };
    let interfaces = (0..SIDES.len()).map(|side| interface(side, catalogue)).collect();
    let routes = ROUTES.iter().map(|(prefix, to)| route(prefix, *to)).collect();
    let neighbors = (0..SIDES.len()).flat_map(neighbors_of).collect();
    HostConfig { interfaces, routes, neighbors, settings }
}

fn interface(side: usize, catalogue: Catalogue) -> Interface {
    let inet = InterfaceAddress { ip: topology::inet(side, ROUTER).into(), len: LINK_LENGTHS.0 };
    let inet6 = InterfaceAddress { ip: topology::inet6(side, ROUTER.into()).into(), len: LINK_LENGTHS.1 };
    let addresses = vec![inet, inet6, InterfaceAddress { ip: LINK_LOCAL.into(), len: LINK_LENGTHS.1 }];
    let (name, mtu) = (SIDES[side].name.to_owned(), SIDES[side].mtu.into());
    let redirects = catalogue.redirects();
    Interface { name, mtu, addresses, redirects, ..Interface::new(side as u16, topology::router_mac(side)) }
}

fn neighbors_of(side: usize) -> [StaticNeighbor; 3] {
    let addresses: [IpAddr; 3] = [
        topology::inet(side, STATION).into(),
        topology::inet6(side, STATION.into()).into(),
        STATION_LOCAL.into(),
    ];
    addresses.map(|ip| StaticNeighbor { interface: side as u16, ip, mac: topology::station_mac(side) })
}

fn route(prefix: &str, to: To) -> StaticRoute {
    let (ip, len) = prefix.split_once('/').expect("the topology's prefixes are right");
    let ip: IpAddr = ip.parse().expect("the topology's prefixes are right");
    let gateway = |side| match ip {
        IpAddr::V4(_) => topology::inet(side, STATION).into(),
        IpAddr::V6(_) => topology::inet6(side, STATION.into()).into(),
    };
    let action = match to {
        To::Station(side) => {
            RouteAction::Forward(StaticNextHop::Gateway { ip: gateway(side), interface: None })
        }
        To::LinkLocal(side) => {
            let interface = Some(side as u16);
            RouteAction::Forward(StaticNextHop::Gateway { ip: STATION_LOCAL.into(), interface })
        }
        To::Blackhole => RouteAction::Blackhole,
        To::Unreachable => RouteAction::Unreachable,
        To::Prohibit => RouteAction::Prohibit,
    };
    StaticRoute { network: InterfaceAddress { ip, len: len.parse().expect("a length") }, action }
}
