//! Makes the panel of each kind of subject.

use std::time::Duration;

use fullview_lab::{PanelError, PanelWork, SliceLimits};
use fullview_table::Family;

use super::arms::{ArmPanel, PanelArm, PanelMember};
use super::family::BenchFamily;
use super::family_stream::FamilyStream;
use super::forward::{ForwardFactory, ONE_CORE_LIMITS};
use super::inputs::Inputs;
use super::kernel::KernelFactory;
use super::lookup::{self, LookupFactory};
use super::peer::Peers;
use super::updates::{self, UpdateFactory};
use crate::error::BenchError;
use crate::settings::{Kind, Settings, Shape};

/// What panels share: the inputs, one factory per kind of subject, the peers' processes, and the test bed.
pub struct PanelFactories {
    pub inputs: Inputs,
    pub forward: ForwardFactory,
    pub lookup: LookupFactory,
    pub updates: UpdateFactory,
    pub kernel: KernelFactory,
    pub peers: Peers,
    /// Whether some variant is another router.
    pub forwards_by_peers: bool,
}

impl PanelFactories {
    /// The seed of the packets of a panel. Other routers receive theirs once for all panels; ours get the same ones then.
    pub fn flow_seed(&self, of_panel: u64) -> u64 {
        if self.forwards_by_peers { self.inputs.seed } else { of_panel }
    }

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
        Kind::Lookup => lookup_panel::<A>(bench, streams, work),
        Kind::Updates => updates_panel::<A>(bench, streams, seed, work),
        Kind::Kernel => bench.kernel.panel::<A>(&mut bench.inputs, streams, seed, work),
    }
}

fn forward_panel<A: BenchFamily>(
    bench: &mut PanelFactories,
    streams: &[FamilyStream],
    seed: u64,
    work: PanelWork<'_>,
) -> Result<(), PanelError> {
    let seed = bench.flow_seed(seed);
    let (mut paths, mut peers) = (Vec::new(), Vec::new());
    for (member, stream) in streams.iter().enumerate() {
        let failed = |error: BenchError| PanelError::Member { member, source: error.into() };
        match &stream.settings.load.peer {
            None => {
                let path = bench.forward.make::<A>(&mut bench.inputs, &stream.settings, seed);
                paths.push(path.map_err(failed)?);
            }
            Some(peer) => {
                let router = bench.peers.router::<A>(&mut bench.inputs, stream, peer).map_err(failed)?;
                peers.push((member, Box::new(router) as Box<dyn PanelMember>));
            }
        }
    }
    let shape = streams[0].settings.load.shape.unwrap_or(Shape::OneCore);
    let run = |panel: ArmPanel<'_>| work(&mut with_peers(panel, peers));
    bench.forward.panel(paths, shape, run).map_err(bed)?
}

fn lookup_panel<A: BenchFamily>(
    bench: &mut PanelFactories,
    streams: &[FamilyStream],
    work: PanelWork<'_>,
) -> Result<(), PanelError> {
    let PanelFactories { inputs, lookup, peers, .. } = bench;
    let mut controls: Vec<(Settings, Box<dyn PanelArm>)> = Vec::new();
    let mut members: Vec<Box<dyn PanelMember>> = Vec::new();
    for (member, stream) in streams.iter().enumerate() {
        let failed = |error: BenchError| PanelError::Member { member, source: error.into() };
        let keys = keys_of(&stream.settings);
        let known = controls.iter().position(|(known, _)| *known == keys);
        let control = known.unwrap_or(controls.len());
        if known.is_none() {
            let empty = lookup.control::<A>(inputs, &stream.settings).map_err(failed)?;
            controls.push((keys, Box::new(empty)));
        }
        members.push(match &stream.settings.lookup.peer {
            None => Box::new(lookup.make::<A>(inputs, &stream.settings, control).map_err(failed)?),
            Some(peer) => Box::new(peers.lookup::<A>(inputs, stream, peer, control).map_err(failed)?),
        });
    }
    let controls = controls.into_iter().map(|(_, control)| control).collect();
    let limits = if has_peers(streams) { PEER_LIMITS } else { lookup::LIMITS };
    work(&mut ArmPanel { controls, members, subtracts: false, limits })
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
    work(&mut ArmPanel { controls, members, subtracts: true, limits: updates::LIMITS })
}

/// A slice is asked for and answered through pipes, which takes some ten microseconds.
const PEER_LIMITS: SliceLimits =
    SliceLimits { shortest: Duration::from_millis(1), longest: ONE_CORE_LIMITS.longest };

fn has_peers(streams: &[FamilyStream]) -> bool {
    streams.iter().any(|stream| stream.settings.lookup.peer.is_some())
}

/// The settings that decide which keys are walked.
fn keys_of(settings: &Settings) -> Settings {
    let mut keys = Settings { table: settings.table.clone(), ..Settings::default() };
    keys.traffic = settings.traffic.clone();
    keys.lookup.keys = settings.lookup.keys;
    keys
}

/// Puts the peers between our own members, each at its position.
fn with_peers<'p>(mut panel: ArmPanel<'p>, peers: Vec<(usize, Box<dyn PanelMember + 'p>)>) -> ArmPanel<'p> {
    if !peers.is_empty() {
        panel.limits.shortest = panel.limits.shortest.max(PEER_LIMITS.shortest);
    }
    for (position, peer) in peers {
        panel.members.insert(position, peer);
    }
    panel
}
