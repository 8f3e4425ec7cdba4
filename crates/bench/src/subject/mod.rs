//! What the lab measures on this machine: a whole forwarding path, lookups alone, changes of routes, forwarders in the
//! kernel, and other implementations of lookup and other routers.
//!
//! [`RouterBench`] keeps what panels share (the inputs, the peers' processes, the test bed) and asks one factory per
//! kind of subject for each panel.

use std::collections::BTreeSet;

use fullview_lab::{Bench, Experiment, PanelError, PanelWork};
use fullview_router::algorithm;
use fullview_table::Family;

use crate::error::BenchError;
use crate::settings::{Kind, Settings, Shape};
use crate::workload::{changes, packets};
use cores::Cores;
use devices::DeviceFactory;
use family::BenchFamily;
use family_stream::FamilyStream;
use forward::ForwardFactory;
use inputs::{Draw, Inputs};
use kernel::KernelFactory;
use lookup::LookupFactory;
use panels::{PanelFactories, bed};
use peer::Peers;
use setting_place::SettingPlace;
use updates::UpdateFactory;
use variants::variants;
use veth::VethFactory;

pub mod arms;
pub mod core_share;
mod cores;
#[cfg(feature = "bpf")]
mod devices;
#[cfg(not(feature = "bpf"))]
#[path = "devices_absent.rs"]
mod devices;
mod family;
mod family_stream;
mod forward;
mod inputs;
#[cfg(feature = "bpf")]
mod kernel;
#[cfg(not(feature = "bpf"))]
#[path = "kernel_absent.rs"]
mod kernel;
mod keys;
mod kinds;
mod limits;
mod lookup;
mod panels;
mod peer;
mod setting_place;
mod shape;
mod stages;
mod updates;
mod variants;
#[cfg(feature = "bpf")]
mod veth;
#[cfg(not(feature = "bpf"))]
#[path = "veth_absent.rs"]
mod veth;

pub use kinds::measures;
pub use limits::{check_slice, slice_limits};
pub use stages::{is_in_this_process, stages};

/// Makes subjects ready.
pub struct RouterBench {
    factories: PanelFactories,
    cores: Cores,
    conditions: Vec<String>,
    /// Whether other implementations look up for any variant.
    looks_up_by_peers: bool,
    /// How the report describes the preferences that variants choose by.
    preferences: BTreeSet<String>,
}

impl RouterBench {
    /// Checks every variant's settings, loads the tables they name and draws what the first panels send.
    pub fn new(experiment: &Experiment<Settings>) -> Result<Self, BenchError> {
        kinds::check(experiment)?;
        let variants = variants(experiment);
        let cores = Cores::observe()?;
        let mut bench = RouterBench {
            factories: PanelFactories {
                inputs: Inputs::new(),
                forward: ForwardFactory::new(cores),
                lookup: LookupFactory::new(cores),
                updates: UpdateFactory::new(cores),
                kernel: KernelFactory::new(cores),
                veth: VethFactory::default(),
                devices: DeviceFactory::default(),
                peers: Peers::new(cores),
                forwards_by_peers: variants.iter().any(|settings| settings.load.peer.is_some()),
            },
            cores,
            conditions: Vec::new(),
            looks_up_by_peers: variants.iter().any(|settings| settings.lookup.peer.is_some()),
            preferences: BTreeSet::new(),
        };
        for (variant, settings) in variants.iter().enumerate() {
            let place = |family| SettingPlace { experiment, variant, family };
            (0..experiment.families.len()).try_for_each(|family| bench.check(settings, &place(family)))?;
        }
        if measures(experiment, Kind::Veth) {
            veth::check_window(experiment)?;
            return Ok(bench);
        }
        if measures(experiment, Kind::Testbed) {
            devices::check_window(experiment)?;
        }
        for settings in &variants {
            bench.factories.inputs.table(&settings.table)?;
        }
        bench.draw_first_block(experiment, &variants)?;
        Ok(bench)
    }

    /// Draws what the first panels send, so that traffic which cannot be made is refused before a results folder is
    /// touched.
    fn draw_first_block(
        &mut self,
        experiment: &Experiment<Settings>,
        variants: &[Settings],
    ) -> Result<(), BenchError> {
        for planned in fullview_lab::block(experiment.families.len(), 0, experiment.seed) {
            let family = &experiment.families[planned.family].name;
            for settings in variants {
                let stream = FamilyStream::of(settings, family)?;
                if stream.settings.kind() == Kind::Updates {
                    self.factories.draw_changes(&stream, planned.seed)?;
                    continue;
                }
                let draw = Draw::of(&stream.settings, planned.seed);
                match stream.family {
                    Family::Inet => drop(self.factories.inputs.flows::<u32>(&draw)?),
                    Family::Inet6 => drop(self.factories.inputs.flows::<u128>(&draw)?),
                }
            }
        }
        Ok(())
    }

    /// Refuses what a variant cannot be measured with in a family, where it stands in the file.
    fn check(&mut self, settings: &Settings, place: &SettingPlace<'_>) -> Result<(), BenchError> {
        let stream = FamilyStream::of(settings, &place.experiment.families[place.family].name);
        let stream = stream.map_err(|error| place.refuse_family(&error))?;
        self.check_stream(&stream).map_err(|error| place.placed(error))
    }

    fn check_stream(&mut self, stream: &FamilyStream) -> Result<(), BenchError> {
        let settings = &stream.settings;
        if settings.kind() == Kind::Veth {
            return veth::check(stream);
        }
        if settings.kind() == Kind::Testbed {
            devices::check(settings)?;
        }
        forward::check_load(&settings.load)?;
        match stream.family {
            Family::Inet => self.check_family::<u32>(stream),
            Family::Inet6 => self.check_family::<u128>(stream),
        }
    }

    fn check_family<A: BenchFamily>(&mut self, stream: &FamilyStream) -> Result<(), BenchError> {
        let settings = &stream.settings;
        packets::check::<A>(&settings.traffic)?;
        lookup::check_settings(&settings.lookup)?;
        lookup::check_peers(&settings.lookup, self.looks_up_by_peers)?;
        changes::check(&settings.updates)?;
        forward::check_filter(settings)?;
        if let Some(peer) = &settings.lookup.peer {
            return self.factories.peers.check::<A>(stream, peer);
        }
        if let Some(peer) = &settings.load.peer {
            forward::check_peer(settings)?;
            return self.factories.peers.check::<A>(stream, peer);
        }
        if self.factories.forwards_by_peers && settings.kind() == Kind::Forward {
            return Err(peer::unlike_routers().into());
        }
        self.preferences.extend(algorithm::check::<A>(&settings.router)?);
        Ok(())
    }

    /// Writes the report's lines about what all variants share. They name the shape, so that has to be settled before;
    /// the lab itself reports in what a variant differs.
    pub fn describe(&mut self, experiment: &Experiment<Settings>) -> Result<(), BenchError> {
        if measures(experiment, Kind::Veth) {
            self.conditions = veth::describe()?;
            return Ok(());
        }
        let settings = &experiment.subject;
        let preferences = self.preferences.iter().cloned();
        self.conditions = self
            .factories
            .inputs
            .describe_tables()
            .chain(describe_traffic(experiment))
            .chain(preferences)
            .collect();
        if measures(experiment, Kind::Forward) {
            self.conditions.extend(forward::describe(&settings.load, self.cores)?);
            match self.factories.forwards_by_peers {
                true => self.conditions.extend(peer::CONDITIONS.map(str::to_owned)),
                false => self.conditions.extend(forward::describe_bed(&settings.load)),
            }
        }
        if measures(experiment, Kind::Lookup) {
            self.conditions.extend(lookup::describe(&settings.lookup, self.cores)?);
        }
        if measures(experiment, Kind::Kernel) {
            self.conditions.extend(kernel::describe(self.cores)?);
        }
        if measures(experiment, Kind::Testbed) {
            self.conditions.extend(devices::describe()?);
        }
        Ok(())
    }

    /// Replaces the shape `auto` by the quieter one, found by short trials of the first variant.
    pub fn quieter_shape(&mut self, experiment: &Experiment<Settings>) -> Result<Shape, BenchError> {
        let cores = self.cores;
        shape::quieter(self, cores, experiment)
    }
}

/// Names what the rates of each family count, where the subject says it: with real clients it differs from stream to stream.
pub fn name_metrics(experiment: &mut Experiment<Settings>) -> Result<(), BenchError> {
    if !measures(experiment, Kind::Veth) {
        return Ok(());
    }
    for at in 0..experiment.families.len() {
        let stream = FamilyStream::of(&experiment.subject, &experiment.families[at].name)?;
        experiment.families[at].metric = Some(veth::metric(&stream)?);
    }
    Ok(())
}

impl Bench<Settings> for RouterBench {
    fn panel(
        &mut self,
        members: &[Settings],
        family: &str,
        seed: u64,
        work: PanelWork<'_>,
    ) -> Result<(), PanelError> {
        let streams = members.iter().map(|settings| FamilyStream::of(settings, family));
        let streams: Vec<FamilyStream> = streams.collect::<Result<_, _>>().map_err(bed)?;
        match streams.first().map(|stream| stream.family) {
            None => Err(bed(BenchError::NoMembers)),
            Some(Family::Inet) => panels::panel::<u32>(&mut self.factories, &streams, seed, work),
            Some(Family::Inet6) => panels::panel::<u128>(&mut self.factories, &streams, seed, work),
        }
    }

    fn conditions(&mut self) -> Vec<String> {
        self.conditions.clone()
    }
}

/// One line, or one for each named stream; or the changes of routes.
fn describe_traffic(experiment: &Experiment<Settings>) -> Vec<String> {
    let settings = &experiment.subject;
    if measures(experiment, Kind::Updates) {
        let batches =
            variants(experiment).iter().map(|settings| settings.updates.batch.unwrap_or(1)).collect();
        return vec![changes::describe(&settings.updates, &batches), updates::RATE.into()];
    }
    let named = settings.streams.0.iter().map(|(name, stream)| {
        format!("{name}: {}", packets::describe(&stream.clone().laid_over(&settings.traffic)))
    });
    let named: Vec<String> = named.collect();
    if named.is_empty() { vec![packets::describe(&settings.traffic)] } else { named }
}
