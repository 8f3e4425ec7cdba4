//! What the profiles say, as data.

use fullview_bench::rates::Offered;
use fullview_profile::stages::StageShare;
use fullview_profile::{CoreQuality, Event};
use serde::Serialize;

use super::stages::{FORWARDING, stage_shares};
use super::window::WindowProfile;

/// Fewer stacks about packets show that the device did something else.
const LEAST_FORWARDING: f64 = 0.1;
/// A generator this late offered another load than the one that is named.
const MOST_BEHIND: f64 = 0.05;
/// The device whose profile others are compared with.
const BASELINE: &str = "kernel";

/// A device with its profile, or why it has none.
pub type MadeProfile = (String, anyhow::Result<WindowProfile>);

/// `profile` in `report.json`.
#[derive(Serialize)]
pub struct ProfilesDocument {
    /// What was sampled, if anything was.
    pub event: Option<Event>,
    /// Whether the right host receives on the device's core.
    pub has_receiver: bool,
    pub profiles: Vec<DeviceProfile>,
    pub failed: Vec<FailedProfile>,
}

#[derive(Serialize)]
pub struct DeviceProfile {
    pub device: String,
    pub core: usize,
    /// Packets a second.
    pub load: f64,
    #[serde(flatten)]
    pub offered: Offered,
    pub received: u64,
    pub quality: CoreQuality,
    /// The share of the device's samples whose stacks are about packets.
    pub forwarding: f64,
    /// Reasons against it.
    pub reasons: Vec<String>,
    /// Shares of the device's samples.
    pub stages: Vec<StageShare>,
    pub graph: String,
    pub stacks: String,
    /// The graph of the difference from the baseline; null for that itself.
    pub difference: Option<String>,
}

#[derive(Serialize)]
pub struct FailedProfile {
    pub device: String,
    pub reason: String,
}

impl ProfilesDocument {
    pub fn new(has_receiver: bool, made: &[MadeProfile]) -> ProfilesDocument {
        let event = baseline(made).map(|(_, one)| one.profile.event);
        let baseline = baseline(made).map(|(device, _)| device);
        let profiles = made.iter().filter_map(|(device, one)| {
            let is_compared = baseline.is_some_and(|baseline| baseline != device);
            Some(DeviceProfile::new(device, one.as_ref().ok()?, is_compared, has_receiver))
        });
        let failed = made.iter().filter_map(|(device, one)| {
            let reason = format!("{:#}", one.as_ref().err()?);
            Some(FailedProfile { device: device.clone(), reason })
        });
        ProfilesDocument { event, has_receiver, profiles: profiles.collect(), failed: failed.collect() }
    }

    pub fn is_valid(&self) -> bool {
        self.failed.is_empty() && self.profiles.iter().all(|one| one.reasons.is_empty())
    }

    /// A sentence for each profile that is missing or not valid.
    pub fn notes(&self) -> Vec<String> {
        let failed = self.failed.iter().map(|one| format!("{}: no profile: {}", one.device, one.reason));
        let invalid = self.profiles.iter().filter(|one| !one.reasons.is_empty());
        let invalid = invalid
            .map(|one| format!("{}: the profile is not valid: {}", one.device, one.reasons.join("; ")));
        failed.chain(invalid).collect()
    }
}

impl DeviceProfile {
    fn new(device: &str, made: &WindowProfile, is_compared: bool, has_receiver: bool) -> DeviceProfile {
        let WindowProfile { load, trial, profile } = made;
        let forwarding = profile.stacks.share_with(&FORWARDING);
        let mut reasons = profile.quality.reasons();
        if forwarding < LEAST_FORWARDING {
            reasons.push(format!("only {:.1} % of the stacks are about packets", forwarding * 100.0));
        }
        let behind = trial.offered.behind();
        if behind > MOST_BEHIND {
            reasons.push(format!("the generator did not send {:.1} % of the load", behind * 100.0));
        }
        DeviceProfile {
            device: device.to_owned(),
            core: profile.core,
            load: *load,
            offered: trial.offered,
            received: trial.received,
            quality: profile.quality.clone(),
            forwarding,
            reasons,
            stages: stage_shares(&profile.stacks, has_receiver),
            graph: graph(device),
            stacks: format!("profile-{device}.folded"),
            difference: is_compared.then(|| difference(device)),
        }
    }

    /// The share of the packets that did not come out.
    pub fn lost(&self) -> f64 {
        1.0 - self.received as f64 / self.offered.sent.max(1) as f64
    }
}

/// The kernel, else the first device that has a profile.
pub fn baseline(made: &[MadeProfile]) -> Option<(&String, &WindowProfile)> {
    let all = || made.iter().filter_map(|(device, one)| Some((device, one.as_ref().ok()?)));
    all().find(|(device, _)| *device == BASELINE).or_else(|| all().next())
}

/// Whether a file of this name belongs to the profiles of a report.
pub fn is_profile_file(name: &str) -> bool {
    name.starts_with("profile-") && (name.ends_with(".svg") || name.ends_with(".folded"))
}

fn graph(device: &str) -> String {
    format!("profile-{device}.svg")
}

fn difference(device: &str) -> String {
    format!("profile-{device}-difference.svg")
}
