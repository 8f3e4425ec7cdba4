//! Searches every device, in a random order.

use std::sync::atomic::{AtomicBool, Ordering};

use fullview_lab::search::{SearchConfig, SearchGoal, receive_rate, search};
use indicatif::ProgressBar;

use super::archive::TrialArchive;
use super::blocks::contrasts;
use super::error::RatesError;
use super::lab::{RateDevice, RateLab};
use super::latency::LatencyTurn;
use super::latency_level::loads;
use super::measurer::DeviceMeasurer;
use super::order::orders;
use super::path_latency::LevelLatency;
use super::questions::{CampaignLoads, Questions};
use super::result::{DeviceRates, DeviceSearch, FailedSearch, RatesReport};
use super::search_progress::SearchProgress;
use super::turns::{FinishedTurn, TurnLog};

/// Packets per second: the smallest load of a search.
pub const SMALLEST: f64 = 1000.0;
/// So often a turn is made again in which a host was lost.
const ATTEMPTS: usize = 3;
/// Trials of the maximum receive rate.
const RECEIVE_TRIALS: u32 = 5;

/// What is measured.
#[derive(Clone, Debug)]
pub struct RatesCampaign {
    /// Each once.
    pub devices: Vec<String>,
    pub repetitions: u32,
    pub seed: u64,
    pub trial_seconds: f64,
    /// The most seconds of trials in one search.
    pub most_seconds: f64,
    /// Loads above it are not offered.
    pub most_load: Option<f64>,
    /// Whether latency is measured after each search.
    pub latency: bool,
    pub questions: Questions,
}

impl RatesCampaign {
    /// The number of searches.
    pub fn searches(&self) -> usize {
        orders(&self.devices, self.repetitions, self.seed).len()
    }

    /// Measures what the log does not have. A flag that is set ends it after the trial that runs; the report then has what was
    /// finished.
    pub fn run(
        &self,
        lab: &mut dyn RateLab,
        files: CampaignFiles<'_>,
        stop: &AtomicBool,
        bar: &ProgressBar,
    ) -> Result<RatesReport, RatesError> {
        let CampaignFiles { archive, turns } = files;
        turns.check_hosts(lab.hosts())?;
        let largest = self.largest_load(lab, turns, stop, bar)?;
        let mut report = self.empty(largest, lab);
        let known = turns.keys();
        turns.finished().iter().for_each(|turn| add(&mut report, turn));
        let mut progress = SearchProgress::new(bar, self.searches(), self.most_seconds);
        for (repetition, device) in orders(&self.devices, self.repetitions, self.seed) {
            progress.begin(&device);
            if !known.contains(&(device.clone(), repetition)) {
                let turn = DeviceTurn { campaign: self, largest, repetition, device: &device };
                let finished = turn.make(lab, archive, stop, &mut progress);
                if stop.load(Ordering::Relaxed) {
                    report.interrupted = true;
                    break;
                }
                turns.add(&finished)?;
                add(&mut report, &finished);
            }
            progress.end();
        }
        report.blocks = contrasts(&report);
        Ok(report)
    }

    /// What the generator holds, which the log keeps.
    fn largest_load(
        &self,
        lab: &mut dyn RateLab,
        turns: &mut TurnLog,
        stop: &AtomicBool,
        bar: &ProgressBar,
    ) -> Result<f64, RatesError> {
        if let Some(known) = turns.largest_load() {
            return Ok(known);
        }
        bar.set_message("the generator alone");
        let most = self.most_load.unwrap_or(f64::INFINITY);
        let largest = persist(lab, |lab| lab.largest_load([SMALLEST, most], self.trial_seconds, stop))?;
        turns.begin(largest)?;
        Ok(largest)
    }

    fn empty(&self, largest_load: f64, lab: &dyn RateLab) -> RatesReport {
        let lab = lab.describe();
        let none = |device: &String| {
            let description = lab.devices.get(device).cloned();
            DeviceRates {
                device: device.clone(),
                description,
                searches: vec![],
                failed: vec![],
                repeated: vec![],
            }
        };
        let devices = self.devices.iter().map(none).collect();
        RatesReport {
            seed: self.seed,
            repetitions: self.repetitions,
            trial_seconds: self.trial_seconds,
            family: lab.family.to_owned(),
            frame_bytes: lab.frame_bytes.clone(),
            smallest_load: SMALLEST,
            largest_load,
            debug_build: cfg!(debug_assertions),
            interrupted: false,
            testbed: lab.facts.clone(),
            devices,
            blocks: vec![],
            profile: None,
            lab,
        }
    }

    fn config(&self, max_load: f64) -> SearchConfig {
        let goals = [SearchGoal::ndr(), SearchGoal::pdr()].map(|goal| goal.scaled(self.trial_seconds));
        SearchConfig {
            goals: goals.into(),
            min_load: SMALLEST,
            max_load,
            warmup_duration: self.trial_seconds,
        }
    }
}

/// Asks a lab again when hosts that were lost meanwhile are back.
pub fn persist<T>(
    lab: &mut dyn RateLab,
    mut ask: impl FnMut(&mut dyn RateLab) -> Result<T, RatesError>,
) -> Result<T, RatesError> {
    for _ in 0..ATTEMPTS {
        match ask(lab) {
            Err(lost) if lost.is_lost() => lab.recover().map_err(|again| lost.not_back(again))?,
            answer => return answer,
        }
    }
    ask(lab)
}

/// Adds a turn.
fn add(report: &mut RatesReport, turn: &FinishedTurn) {
    if let Some(rates) = report.devices.iter_mut().find(|rates| rates.device == turn.device) {
        rates.add(turn.search.clone(), &turn.failed);
        rates.repeated.extend_from_slice(&turn.repeated);
    }
}

/// The files of a campaign.
pub struct CampaignFiles<'f> {
    /// Every trial.
    pub archive: &'f mut TrialArchive,
    /// What was finished.
    pub turns: &'f mut TurnLog,
}

/// One search of one device.
struct DeviceTurn<'c> {
    campaign: &'c RatesCampaign,
    largest: f64,
    repetition: u32,
    device: &'c str,
}

impl DeviceTurn<'_> {
    /// Makes the turn, again if a host was lost and has come back.
    fn make(
        &self,
        lab: &mut dyn RateLab,
        archive: &mut TrialArchive,
        stop: &AtomicBool,
        progress: &mut SearchProgress<'_>,
    ) -> FinishedTurn {
        let (repetition, mut repeated) = (self.repetition, Vec::new());
        let reason = |error: &RatesError| FailedSearch { repetition, reason: error.to_string() };
        loop {
            archive.begin_turn(repeated.len());
            let mut searched = self.search(lab, archive, stop, progress);
            let latency = self.latency(searched.as_ref().ok(), lab, archive, stop);
            let lost =
                [searched.as_ref().err(), latency.as_ref().err()].into_iter().flatten().find(|e| e.is_lost());
            if let Some(error) = lost.filter(|_| repeated.len() < ATTEMPTS) {
                repeated.push(reason(error));
                match lab.recover() {
                    Ok(()) => continue,
                    Err(error) => searched = Err(error),
                }
            }
            let mut turn = finished(self.device, repetition, searched, latency);
            turn.repeated = repeated;
            return turn;
        }
    }

    fn search(
        &self,
        lab: &mut dyn RateLab,
        archive: &mut TrialArchive,
        stop: &AtomicBool,
        progress: &mut SearchProgress<'_>,
    ) -> Result<DeviceSearch, RatesError> {
        let DeviceTurn { campaign, largest, repetition, device } = *self;
        let mut running = lab.start(device)?;
        running.begin(repetition)?;
        let searched = self.search_on(running.as_mut(), archive, stop, progress);
        let ended = if stop.load(Ordering::Relaxed) { Ok(()) } else { running.end() };
        drop(running);
        // What ended a search is more than what failed after it.
        let mut searched = searched.and_then(|searched| ended.map(|()| searched))?;
        campaign.questions.converge(lab, device, largest, &mut searched, stop)?;
        Ok(searched)
    }

    /// The search on a device that runs, with what is asked of it beside.
    fn search_on(
        &self,
        running: &mut dyn RateDevice,
        archive: &mut TrialArchive,
        stop: &AtomicBool,
        progress: &mut SearchProgress<'_>,
    ) -> Result<DeviceSearch, RatesError> {
        let DeviceTurn { campaign, largest, repetition, device } = *self;
        let routes = campaign.questions.prepare(running)?;
        let mut measurer = DeviceMeasurer { running, device, repetition, archive, stop, progress };
        let results = search(campaign.config(largest), &mut measurer, campaign.most_seconds)?;
        let receive = receive_rate(&mut measurer, largest, campaign.trial_seconds, RECEIVE_TRIALS)?;
        let loads = CampaignLoads { largest, trial_seconds: campaign.trial_seconds };
        let mut searched = DeviceSearch::new(repetition, results, receive, largest);
        searched.routes = routes;
        campaign.questions.ask(loads, &mut measurer, &mut searched)?;
        campaign.questions.finish(running, &mut searched)?;
        Ok(searched)
    }

    /// The latency at loads that follow from a search, if it is wanted.
    fn latency(
        &self,
        searched: Option<&DeviceSearch>,
        lab: &mut dyn RateLab,
        archive: &mut TrialArchive,
        stop: &AtomicBool,
    ) -> Result<Vec<LevelLatency>, RatesError> {
        let DeviceTurn { campaign, repetition, device, .. } = *self;
        let RatesCampaign { seed, trial_seconds, ref questions, .. } = *campaign;
        let Some(search) = searched.filter(|_| campaign.latency) else { return Ok(vec![]) };
        let mut turn = LatencyTurn { device, repetition, trial_seconds, seed, questions, archive, stop };
        turn.measure(lab, &loads(search.pdr, self.largest))
    }
}

/// Without its latency the rates still count.
fn finished(
    device: &str,
    repetition: u32,
    searched: Result<DeviceSearch, RatesError>,
    latency: Result<Vec<LevelLatency>, RatesError>,
) -> FinishedTurn {
    let mut failed = Vec::new();
    let mut keep = |reason| failed.push(FailedSearch { repetition, reason });
    let latency = latency.map_err(|error| keep(format!("latency: {error}"))).unwrap_or_default();
    let search = searched.map_err(|error| keep(error.to_string())).ok();
    let search = search.map(|search| DeviceSearch { latency, ..search });
    FinishedTurn::new(device, repetition, search, failed)
}
