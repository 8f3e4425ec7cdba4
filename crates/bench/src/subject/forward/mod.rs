//! A whole forwarding path in memory: generator, router, receiver.

use std::num::NonZeroU32;
use std::sync::Arc;

use fullview_lab::SliceLimits;

use crate::error::{BenchError, WrongSetting, require, require_setting};
use crate::traffic::frame::FrameSize;
use crate::traffic::load::LoadConfig;
use fullview_plane::burst::BURST;
use fullview_plane::interface::Interface;
use fullview_plane::wire::ethernet::Mac;
use fullview_table::Table;

use super::arms::ArmPanel;
use super::cores::Cores;
use super::family::BenchFamily;
use super::inputs::{Draw, Inputs};
use crate::settings::{DutSettings, FilterSettings, Kind, LoadSettings, Settings, Shape};
use crate::workload::filter::filter;
use crate::workload::packets;
use crate::workload::router::router;
use fullview_router::algorithm;
use path::ForwardPath;
use without_prefetch::WithoutPrefetch;

mod one_core;
mod path;
mod two_cores;
mod without_prefetch;

/// The highest rate that can be asked for: 1 ns per packet is less than writing 60 bytes takes.
const FASTEST_PPS: f64 = 1e9;

/// Refuses a load that cannot be offered, before anything is loaded.
pub fn check_load(settings: &LoadSettings) -> Result<(), WrongSetting> {
    if let Some(pps) = settings.pps {
        require_setting(pps.is_finite() && pps > 0.0 && pps <= FASTEST_PPS, &["load", "pps"], || {
            format!(
                "{pps} cannot be offered: give 1 to {FASTEST_PPS}, or leave it out for all the router takes"
            )
        })?;
    }
    let (burst, slots) = (settings.burst.unwrap_or(64), settings.packets.unwrap_or(2_048));
    require_setting((1..=BURST).contains(&burst), &["load", "burst"], || {
        format!("{burst}: give 1 to {BURST} packets")
    })?;
    require_setting((burst..=1 << 20).contains(&slots), &["load", "packets"], || {
        format!("{slots}: give {burst} (one burst) to {}", 1 << 20)
    })?;
    let ports = settings.ports.is_none_or(|ports| (1..=packets::MOST_PORTS).contains(&ports));
    require_setting(ports, &["load", "ports"], || format!("give 1 to {}", packets::MOST_PORTS))?;
    require_setting(settings.check_one_in != Some(0), &["load", "check-one-in"], || {
        "0: 1 checks every packet".into()
    })
}

/// Refuses settings that the bed of another router does not have.
pub fn check_peer(settings: &Settings) -> Result<(), BenchError> {
    let Settings { load, traffic, .. } = settings;
    let smallest = packets::frame_size(traffic) == FrameSize::Smallest;
    require(smallest && load.pps.is_none() && load.through.is_none(), || {
        "load.peer: other routers get the smallest frames, as many as they take".into()
    })?;
    Ok(())
}

/// The number of ports that packets leave by.
fn egress_ports(settings: &LoadSettings) -> u16 {
    settings.ports.unwrap_or(1)
}

/// Refuses rules that are wrong before anything is loaded, and a filter or a cache where nothing forwards.
pub fn check_filter(settings: &Settings) -> Result<(), BenchError> {
    let in_memory = settings.kind() == Kind::Forward && settings.load.peer.is_none();
    require(in_memory || settings.route_cache.is_none(), || {
        "subject.route-cache belongs to the kind \"forward\" without a peer".into()
    })?;
    let FilterSettings { language, states, known_flows, .. } = &settings.filter;
    require(in_memory || language.is_none() || is_router(settings), || {
        "subject.filter belongs to the kind \"forward\" without a peer, and to \"testbed\" with this program as device"
            .into()
    })?;
    require(in_memory || (states.is_none() && known_flows.is_none()), || {
        "filter.states, filter.known-flows: only with the kind \"forward\"".into()
    })?;
    let fits = settings.route_cache.is_none_or(|entries| (1..=1 << 24).contains(&entries));
    require_setting(fits, &["route-cache"], || "give 1 to 16,777,216 destinations".into())?;
    let ports = 0..=egress_ports(&settings.load);
    let interfaces: Vec<Interface> = ports.map(|port| Interface::new(port, Mac([2; 6]))).collect();
    Ok(filter(&settings.filter, &interfaces, 0).map(drop)?)
}

/// Whether the device of a test bed is this program.
fn is_router(settings: &Settings) -> bool {
    let device = settings.testbed.device.as_deref();
    settings.kind() == Kind::Testbed && device.is_some_and(|device| device != DutSettings::KERNEL)
}

/// How the report names the load and where it runs.
pub fn describe(settings: &LoadSettings, cores: Cores) -> Result<Vec<String>, BenchError> {
    let offered = match settings.pps {
        Some(pps) => format!("load: {pps} packets per second offered"),
        None => "load: as many packets as the router takes (MRR)".into(),
    };
    let one_core = settings.shape.unwrap_or(Shape::OneCore) != Shape::TwoCores && settings.pps.is_none();
    let value = match one_core {
        true => "rate: packets that the whole loop of generator, router and receiver forwards per second",
        false => "rate: packets received per second",
    };
    Ok(vec![offered, value.into(), cores.of(settings.shape.unwrap_or(Shape::OneCore))?.to_string()])
}

/// How the report names what is around our own router.
pub fn describe_bed(settings: &LoadSettings) -> [String; 2] {
    let config = LoadConfig::new(FrameSize::Smallest, packets::MACS, Vec::new());
    let (burst, slots) = (settings.burst.unwrap_or(config.burst), settings.packets.unwrap_or(config.packets));
    let check = settings.check_one_in.unwrap_or(config.check_one_in.get());
    let ports = egress_ports(settings);
    [
        format!(
            "ports: memory rings, {ports} for what leaves, bursts of {burst}, {slots} packets of memory in flight"
        ),
        format!("receiver: every packet checked before each panel, one in {check} during it"),
    ]
}

/// Makes forwarding paths.
pub struct ForwardFactory {
    cores: Cores,
}

impl ForwardFactory {
    /// Paths run on these cores.
    pub fn new(cores: Cores) -> ForwardFactory {
        ForwardFactory { cores }
    }

    /// Compiles the algorithm that the settings name, and draws the packets.
    pub fn make<A: BenchFamily>(
        &self,
        inputs: &mut Inputs,
        settings: &Settings,
        seed: u64,
    ) -> Result<ForwardPath<A>, BenchError> {
        let flows = inputs.flows::<A>(&Draw::of(settings, seed))?;
        let table = inputs.table(&settings.table)?;
        let compiled = algorithm::compile(&settings.router, A::rib(&table))?;
        let ask_ahead = settings.load.prefetch.unwrap_or(true);
        let fib = if ask_ahead { compiled.fib } else { Arc::new(WithoutPrefetch(compiled.fib)) };
        let (inet, inet6) = A::fibs(fib)?;
        let ends = (packets::MACS.destination, egress_ports(&settings.load));
        let mut router = router(inet, inet6, &table.next_hops, ends)?;
        if let Some(filter) = filter(&settings.filter, &router.view().parts().interfaces, seed)? {
            router.set_filter(filter);
        }
        router.set_route_cache(settings.route_cache.unwrap_or(0));
        let mut config = config(settings, &table);
        config.placement = Some(self.cores.of(settings.load.shape.unwrap_or(Shape::OneCore))?);
        Ok(ForwardPath { config, flows, router, through: settings.load.through, events: compiled.log })
    }

    /// Lends a panel of these paths to `work`. All of them have the same shape, size of frames and number of packets.
    pub fn panel<A: BenchFamily, T>(
        &self,
        paths: Vec<ForwardPath<A>>,
        shape: Shape,
        limits: SliceLimits,
        work: impl FnOnce(ArmPanel<'_>) -> T,
    ) -> Result<T, BenchError> {
        match shape {
            Shape::TwoCores => Ok(work(two_cores::panel(paths, self.cores, limits)?)),
            Shape::OneCore | Shape::Auto => {
                self.cores.pin_one()?;
                one_core::panel(paths, limits, work)
            }
        }
    }
}

fn config(settings: &Settings, table: &Table) -> LoadConfig {
    let (size, load) = (packets::frame_size(&settings.traffic), &settings.load);
    let mut config =
        LoadConfig::new(size, packets::MACS, packets::departures(&table.next_hops, egress_ports(load)));
    config.ingress_port = packets::INGRESS;
    config.burst = load.burst.unwrap_or(config.burst);
    config.packets = load.packets.unwrap_or(config.packets);
    config.check_one_in = load.check_one_in.and_then(NonZeroU32::new).unwrap_or(config.check_one_in);
    config.pps = load.pps;
    config
}
