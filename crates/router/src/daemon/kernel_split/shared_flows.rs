//! Known flows of a filter whose packets the classifier forwards.

use std::sync::Arc;

use fullview_plane::kernel_flows::{
    FlowControl, FlowMemory, FlowSharing, GraceThread, PortDevice, PortProgram,
};
use fullview_plane::report_time::ReportTime;
use fullview_plane::view::View;

use crate::daemon::xdp_features::FeatureReader;
use crate::log;
use crate::route::LinkIndex;

/// Starts the thread that so many known flows need, if there is to be any.
pub fn barriers(kernel_flows: u16) -> Option<GraceThread> {
    if kernel_flows == 0 {
        return None;
    }
    let started = GraceThread::start();
    started.inspect_err(|error| log::warning(&format!("no known flows in the kernel: {error}"))).ok()
}

pub struct SharedFlows {
    control: FlowControl,
    grace: GraceThread,
    features: FeatureReader,
    /// Those that workers have.
    devices: Vec<PortDevice>,
    /// A driver no longer takes the frames that flows send to it.
    is_stopped: bool,
}

impl SharedFlows {
    pub fn new(memory: FlowMemory, grace: GraceThread) -> SharedFlows {
        let (control, features) = (FlowControl::new(Arc::new(memory)), FeatureReader::open());
        SharedFlows { control, grace, features, devices: Vec::new(), is_stopped: false }
    }

    /// A worker's end.
    pub fn sharing(&self, worker: u16) -> FlowSharing {
        FlowSharing::new(Arc::clone(self.control.memory()), self.grace.periods(), worker)
    }

    pub fn memory(&self) -> Arc<FlowMemory> {
        Arc::clone(self.control.memory())
    }

    /// The devices of a worker's ports, by number.
    pub fn devices(
        &mut self,
        ports: impl Iterator<Item = (LinkIndex, Option<PortProgram>)>,
    ) -> Vec<PortDevice> {
        let device = |(index, program)| {
            let takes_frames = program == Some(PortProgram::Xdp) && self.takes_frames(index);
            PortDevice { index, program, takes_frames }
        };
        let devices = ports.map(device).collect::<Vec<_>>();
        self.devices.clone_from(&devices);
        self.is_stopped = false;
        devices
    }

    /// What the kernel does not know is not assumed: the driver would drop the frames.
    fn takes_frames(&self, link: LinkIndex) -> bool {
        self.features.known(link).is_some_and(|features| features.takes_redirected)
    }

    /// Ends all flows if the view differs by more than adjacencies, and reports, as [`FlowControl::follow`].
    pub fn follow(&mut self, view: &Arc<View>, complete_until: ReportTime) {
        if !self.is_stopped && self.features.have_changed() {
            self.stop_without_features();
        }
        if self.is_stopped {
            self.control.pause();
        } else {
            self.control.follow(view, complete_until);
        }
    }

    fn stop_without_features(&mut self) {
        let lost = self.devices.iter().find(|device| device.takes_frames && !self.takes_frames(device.index));
        if let Some(PortDevice { index, .. }) = lost {
            log::warning(&format!(
                "no known flows in the kernel until the interfaces change: the driver of link {index} takes no redirected frames any more"
            ));
            self.is_stopped = true;
        }
    }

    /// No flow forwards before the next [`Self::follow`].
    pub fn pause(&mut self) {
        self.control.pause();
    }
}
