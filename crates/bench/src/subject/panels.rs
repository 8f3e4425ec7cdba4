//! Makes the panel of each kind of subject.

use fullview_lab::{PanelError, PanelWork};
use fullview_table::Family;

use super::arms::{ArmPanel, PanelArm, PanelMember};
use super::devices::DeviceFactory;
use super::family::BenchFamily;
use super::family_stream::FamilyStream;
use super::forward::ForwardFactory;
use super::inputs::Inputs;
use super::kernel::KernelFactory;
use super::limits;
use super::lookup::LookupFactory;
use super::peer::Peers;
use super::updates::UpdateFactory;
use super::veth::VethFactory;
use crate::error::BenchError;
use crate::settings::{Kind, Settings, Shape};

/// What panels share: the inputs, one factory per kind of subject, the peers' processes, and the test bed.
pub struct PanelFactories {
    pub inputs: Inputs,
    pub forward: ForwardFactory,
    pub lookup: LookupFactory,
    pub updates: UpdateFactory,
    pub kernel: KernelFactory,
    pub veth: VethFactory,
    pub devices: DeviceFactory,
    pub peers: Peers,
    /// Whether the variants are routers in processes of their own.
    pub forwards_by_peers: bool,
}

impl PanelFactories {
    /// Draws the changes of a panel, so that changes which cannot be made are refused.
    pub fn draw_changes(&mut self, stream: &FamilyStream, seed: u64) -> Result<(), BenchError> {
        let PanelFactories { inputs, updates, .. } = self;
        match stream.family {
            Family::Inet => updates.stream::<u32>(inputs, &stream.settings, seed).map(drop),
            Family::Inet6 => updates.stream::<u128>(inputs, &stream.settings, seed).map(drop),
        }
    }
}

/// Why no panel could be made.
pub fn bed(error: BenchError) -> PanelError {
    PanelError::Bed(error.into())
}

/// Makes these members ready together and lends their panel to `work`.
pub fn panel<A: BenchFamily>(
    bench: &mut PanelFactories,
    streams: &[FamilyStream],
    seed: u64,
    work: PanelWork<'_>,
) -> Result<(), PanelError> {
    match streams[0].settings.kind() {
        Kind::Forward => forward_panel::<A>(bench, streams, seed, work),
        Kind::Lookup => lookup_panel::<A>(bench, streams, seed, work),
        Kind::Updates => updates_panel::<A>(bench, streams, seed, work),
        Kind::Kernel => bench.kernel.panel::<A>(&mut bench.inputs, streams, seed, work),
        Kind::Veth => bench.veth.panel(streams, seed, work),
        Kind::Testbed => bench.devices.panel::<A>(&mut bench.inputs, streams, seed, work),
    }
}

fn forward_panel<A: BenchFamily>(
    bench: &mut PanelFactories,
    streams: &[FamilyStream],
    seed: u64,
    work: PanelWork<'_>,
) -> Result<(), PanelError> {
    if bench.forwards_by_peers {
        let panel = bench.peers.routers::<A>(&mut bench.inputs, streams, seed);
        let failed =
            |(member, error): (usize, BenchError)| PanelError::Member { member, source: error.into() };
        return work(&mut panel.map_err(failed)?);
    }
    let mut paths = Vec::new();
    for (member, stream) in streams.iter().enumerate() {
        let failed = |error: BenchError| PanelError::Member { member, source: error.into() };
        let path = bench.forward.make::<A>(&mut bench.inputs, &stream.settings, seed);
        paths.push(path.map_err(failed)?);
    }
    let shape = streams[0].settings.load.shape.unwrap_or(Shape::OneCore);
    let limits = limits::of_panel(streams);
    bench.forward.panel(paths, shape, limits, |mut panel| work(&mut panel)).map_err(bed)?
}

fn lookup_panel<A: BenchFamily>(
    bench: &mut PanelFactories,
    streams: &[FamilyStream],
    seed: u64,
    work: PanelWork<'_>,
) -> Result<(), PanelError> {
    let PanelFactories { inputs, lookup, peers, .. } = bench;
    let running = peers.lookups::<A>(inputs, streams, seed).map_err(bed)?;
    let mut controls: Vec<(Settings, Box<dyn PanelArm>)> = Vec::new();
    let mut members: Vec<Box<dyn PanelMember>> = Vec::new();
    for (member, stream) in streams.iter().enumerate() {
        let failed = |error: BenchError| PanelError::Member { member, source: error.into() };
        let keys = keys_of(&stream.settings);
        let known = controls.iter().position(|(known, _)| *known == keys);
        let control = known.unwrap_or(controls.len());
        if known.is_none() {
            let empty = lookup.control::<A>(inputs, &stream.settings, seed).map_err(failed)?;
            controls.push((keys, Box::new(empty)));
        }
        members.push(match &stream.settings.lookup.peer {
            None => Box::new(lookup.make::<A>(inputs, &stream.settings, seed, control).map_err(failed)?),
            Some(peer) => Box::new(running.lookup::<A>(member, stream, peer, control).map_err(failed)?),
        });
    }
    let controls = controls.into_iter().map(|(_, control)| control).collect();
    work(&mut ArmPanel::new(controls, members, false, limits::of_panel(streams)))
}

/// Members with the same table and the same settings of changes get the same changes, and share a control.
fn updates_panel<A: BenchFamily>(
    bench: &mut PanelFactories,
    streams: &[FamilyStream],
    seed: u64,
    work: PanelWork<'_>,
) -> Result<(), PanelError> {
    let PanelFactories { inputs, updates, .. } = bench;
    let (mut known, mut controls) = (Vec::new(), Vec::<Box<dyn PanelArm>>::new());
    let mut members: Vec<Box<dyn PanelMember>> = Vec::new();
    for (member, FamilyStream { settings, .. }) in streams.iter().enumerate() {
        let failed = |error: BenchError| PanelError::Member { member, source: error.into() };
        let key = (&settings.table, &settings.updates);
        if !known.iter().any(|(of, _)| *of == key) {
            let stream = updates.stream::<A>(inputs, settings, seed).map_err(failed)?;
            controls.push(Box::new(updates.control(inputs, settings, &stream).map_err(failed)?));
            known.push((key, stream));
        }
        let place = known.iter().enumerate().find(|(_, (of, _))| *of == key);
        let (control, (_, stream)) = place.ok_or_else(|| failed(BenchError::NoMembers))?;
        members.push(Box::new(updates.make(inputs, settings, stream, control).map_err(failed)?));
    }
    work(&mut ArmPanel::new(controls, members, true, limits::of_panel(streams)))
}

/// The settings that decide which keys are walked.
fn keys_of(settings: &Settings) -> Settings {
    let mut keys = Settings { table: settings.table.clone(), ..Settings::default() };
    keys.traffic = settings.traffic.clone();
    keys.lookup.keys = settings.lookup.keys;
    keys
}
