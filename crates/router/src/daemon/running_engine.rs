//! A program in the kernel that is loaded, and how it is brought up to date.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use fullview_plane::engine::{Engine, EngineError, XdpConfig, XdpDevice};
use fullview_plane::verdict::LimitedReason;
use fullview_plane::view::{TableReaders, View};
use fullview_table::group::GroupView;

use super::attachments::Attachments;
use super::link_program::{noted_namespace, without_verifier_log};
use super::program_notes::NotedFailures;
use super::watch_hub::WatchHub;
use super::xdp_devices::DeviceState;
use crate::mirror::Mirror;
use crate::options::PuntRates;
use crate::route::LinkIndex;

/// A loaded program, and the state that it was brought up to date with.
pub struct RunningEngine {
    pub engine: Engine,
    pub attachments: Attachments,
    /// The network namespace whose failed links a program within the kernel can note, if there is one.
    namespace: Option<u32>,
    /// The interface of each port that was published last; its index is 0 if it did not exist.
    devices: Vec<DeviceState>,
    /// The number of VRFs whose tables the program has room for.
    pub room: usize,
    /// Whether the kernel has refused to observe packets.
    refuses_to_observe: bool,
    /// Whether the program has the tables.
    pub serves: bool,
    /// The view that was published last, and the generations of its tables. The groups are kept too, so that the next hops
    /// of routes mean the same to the program as to the routes.
    view: Arc<View>,
    groups: Arc<GroupView>,
    generations: Vec<[u64; 2]>,
}

impl RunningEngine {
    /// Loads a program with room for that many VRFs, and for some more that may be added.
    pub fn new(
        (devices, vrfs): (&[DeviceState], usize),
        rates: &PuntRates,
        mirror: &Mirror,
        hub: &WatchHub,
        awaits_links: bool,
    ) -> Result<RunningEngine, EngineError> {
        let room = if vrfs > 0 { vrfs.next_power_of_two().min(Engine::MOST_VRFS) } else { 0 };
        let mut engine = Engine::with_room(room)?;
        let limits =
            LimitedReason::ALL.iter().filter_map(|reason| Some((*reason, rates.of_program(*reason)?)));
        limits.into_iter().try_for_each(|(reason, rate)| engine.limit(reason, rate))?;
        if awaits_links {
            engine.await_links();
        }
        hub.observe(Box::new(engine.observer(indices(devices), hub.sample())?));
        engine.observe(hub.is_observing())?;
        // The generations are empty, so the first `follow` publishes.
        let view = mirror.views().current();
        let groups = view.parts().groups.current();
        let namespace = noted_namespace(engine.note_failed_links());
        Ok(RunningEngine {
            engine,
            attachments: Attachments::default(),
            namespace,
            devices: devices.to_vec(),
            room,
            refuses_to_observe: false,
            serves: false,
            view,
            groups,
            generations: Vec::new(),
        })
    }

    /// The links to these interfaces, by index, for a program that takes this one's place. It leaves all others.
    pub fn links(&mut self, devices: &[DeviceState]) -> Result<BTreeMap<LinkIndex, OwnedFd>, EngineError> {
        self.attachments.detach_changed(&mut self.engine, devices);
        let link = |index| Ok(self.engine.link(index)?.map(|link| (index, link)));
        indices(devices).into_iter().map(link).filter_map(Result::transpose).collect()
    }

    /// Where the program learns of failed links.
    pub fn noted_failures(&self) -> NotedFailures {
        NotedFailures { failures: self.engine.link_failures(), namespace: self.namespace }
    }

    /// The index of a port's interface; 0 if it did not exist.
    pub fn index(&self, port: u16) -> LinkIndex {
        self.devices.get(usize::from(port)).map_or(0, |state| state.device.index)
    }

    /// Why the program is not attached to a port's interface, if that refuses it.
    pub fn refusal(&self, port: u16) -> Option<String> {
        self.attachments.refusal(self.index(port))
    }

    /// Leaves the interfaces that are others now, and has the program copy packets for clients, or no more. Returns why the
    /// kernel refuses that.
    pub fn prepare(&mut self, devices: &[DeviceState], hub: &WatchHub) -> Option<String> {
        self.attachments.detach_changed(&mut self.engine, devices);
        // A program may have been refused only because an interface was going.
        self.refuses_to_observe &= self.devices == devices;
        self.observe(hub.is_observing())
    }

    /// Has the program copy packets for clients, or no more. Returns why the kernel refuses that; it is asked once.
    fn observe(&mut self, is_observing: bool) -> Option<String> {
        if self.refuses_to_observe {
            return None;
        }
        let refusal = self.engine.observe(is_observing).err()?;
        self.refuses_to_observe = true;
        let why = without_verifier_log(&refusal.to_string());
        Some(format!("packets cannot be observed: {why}"))
    }

    /// Publishes what has changed. If the engine fails, it is attached to no interface.
    pub fn follow(
        &mut self,
        mirror: &Mirror,
        devices: &[DeviceState],
        hub: &WatchHub,
    ) -> Result<(), EngineError> {
        let followed = self.follow_view(mirror, devices);
        self.serves = followed.is_ok();
        if followed.is_err() {
            self.attachments.detach_all(&mut self.engine);
            // The next call publishes.
            self.generations.clear();
        }
        if indices(&self.devices) != indices(devices) {
            hub.follow_devices(indices(devices));
        }
        self.devices = devices.to_vec();
        followed
    }

    fn follow_view(&mut self, mirror: &Mirror, devices: &[DeviceState]) -> Result<(), EngineError> {
        let view = mirror.views().current();
        let tables = &view.parts().tables;
        let generation =
            |table: &TableReaders| [table.inet.reader().generation(), table.inet6.reader().generation()];
        let generations: Vec<_> = tables.iter().map(generation).collect();
        let groups = view.parts().groups.current();
        let is_planned =
            Arc::ptr_eq(&view, &self.view) && Arc::ptr_eq(&groups, &self.groups) && devices == self.devices;
        if generations == self.generations && is_planned {
            return Ok(());
        }
        if self.generations.is_empty() || !is_planned {
            let devices: Vec<XdpDevice> = devices.iter().map(|state| state.device).collect();
            self.engine.publish(&XdpConfig::from_view(&view, &devices), tables.clone())?;
        } else {
            self.engine.sync()?;
        }
        (self.view, self.groups, self.generations) = (Arc::clone(&view), groups, generations);
        Ok(())
    }
}

/// The indices of the ports' interfaces.
fn indices(devices: &[DeviceState]) -> Vec<LinkIndex> {
    devices.iter().map(|state| state.device.index).collect()
}
