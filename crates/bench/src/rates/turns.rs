//! What a campaign has finished, so that it can be resumed: a file with its settings, and a line for each turn of a device.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use fullview_lab::search::Trial;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::archive::replace;
use super::delays::Delays;
use super::error::RatesError;
use super::path_latency::{LevelLatency, PathLatency};
use super::result::{DeviceSearch, FailedSearch};

/// The name of the file.
pub const FILE: &str = "turns.jsonl";

/// The first line.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CampaignStart {
    settings: Map<String, Value>,
    /// Facts about the hosts that must not change.
    #[serde(default)]
    hosts: Map<String, Value>,
    /// Packets a second.
    largest_load: f64,
}

/// What one repetition of a device found, with what the report leaves out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FinishedTurn {
    pub device: String,
    pub search: Option<DeviceSearch>,
    pub failed: Vec<FailedSearch>,
    /// Why it was made again before.
    pub repeated: Vec<FailedSearch>,
    /// From 1.
    pub repetition: u32,
    trials: Vec<Trial>,
    /// Of each level, through the device and over a cable.
    delays: Vec<Vec<Buckets>>,
}

/// Delays, with how often each occurred.
type Buckets = Vec<(u64, u64)>;

/// The file of a campaign.
pub struct TurnLog {
    path: PathBuf,
    settings: Map<String, Value>,
    hosts: Map<String, Value>,
    largest_load: Option<f64>,
    finished: Vec<FinishedTurn>,
    file: Option<File>,
}

impl FinishedTurn {
    pub fn new(
        device: &str,
        repetition: u32,
        search: Option<DeviceSearch>,
        failed: Vec<FailedSearch>,
    ) -> FinishedTurn {
        let trials = search.as_ref().map(|search| search.trials.clone()).unwrap_or_default();
        let levels = search.iter().flat_map(|search| &search.latency);
        let delays = levels.map(|level| paths(level).map(|path| path.distribution.buckets()).collect());
        let (device, delays, repeated) = (device.into(), delays.collect(), Vec::new());
        FinishedTurn { device, repetition, trials, delays, search, failed, repeated }
    }

    /// Puts back what the search is written without.
    fn restore(&mut self) {
        let Some(search) = &mut self.search else { return };
        search.trials = std::mem::take(&mut self.trials);
        for (level, delays) in search.latency.iter_mut().zip(&self.delays) {
            for (path, buckets) in
                [Some(&mut level.device), level.link.as_mut()].into_iter().flatten().zip(delays)
            {
                path.distribution = Delays::of_buckets(buckets);
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.failed.is_empty() && self.search.as_ref().is_some_and(|search| search.unanswered.is_empty())
    }

    fn key(&self) -> (String, u32) {
        (self.device.clone(), self.repetition)
    }
}

fn paths(level: &LevelLatency) -> impl Iterator<Item = &PathLatency> {
    [Some(&level.device), level.link.as_ref()].into_iter().flatten()
}

/// The turns in the lines behind the first one, of which the last may be cut off.
fn turns<'l>(
    path: &Path,
    lines: impl Iterator<Item = &'l str>,
    is_whole: bool,
) -> Result<Vec<FinishedTurn>, RatesError> {
    let mut lines = (2..).zip(lines).peekable();
    let mut turns = Vec::new();
    while let Some((number, line)) = lines.next() {
        match serde_json::from_str(line) {
            Ok(turn) => turns.push(turn),
            Err(error) if is_whole || lines.peek().is_some() || !error.is_eof() => {
                return Err(RatesError::Turn { path: path.into(), line: number, error });
            }
            Err(_) => {}
        }
    }
    Ok(turns)
}

impl TurnLog {
    /// The log of a new campaign; the file is made with the first line.
    pub fn create(folder: &Path, settings: Map<String, Value>) -> TurnLog {
        let path = folder.join(FILE);
        TurnLog { path, settings, hosts: Map::new(), largest_load: None, finished: Vec::new(), file: None }
    }

    /// Reads the log of a campaign with the same settings. A last line that was cut off is none. A turn that failed, or that left a
    /// question without an answer, is to be made again.
    pub fn resume(folder: &Path, settings: Map<String, Value>) -> Result<TurnLog, RatesError> {
        let mut log = TurnLog::create(folder, settings);
        let path = log.path.clone();
        let bytes = fs::read(&path).map_err(|_| RatesError::NothingToResume { path: path.clone() })?;
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines();
        let start = lines.next().and_then(|line| serde_json::from_str::<CampaignStart>(line).ok());
        let start = start.ok_or(RatesError::NothingToResume { path })?;
        log.compare(&start.settings, &log.settings)?;
        log.hosts = start.hosts;
        log.finished = turns(&log.path, lines, text.ends_with('\n'))?;
        log.finished.retain(FinishedTurn::is_whole);
        log.begin(start.largest_load)?;
        log.finished.iter_mut().for_each(FinishedTurn::restore);
        Ok(log)
    }

    /// Refuses to go on with other hosts than those that the campaign began with.
    pub fn check_hosts(&mut self, now: Map<String, Value>) -> Result<(), RatesError> {
        if self.largest_load.is_some() {
            return self.compare(&self.hosts, &now);
        }
        self.hosts = now;
        Ok(())
    }

    fn compare(&self, before: &Map<String, Value>, now: &Map<String, Value>) -> Result<(), RatesError> {
        let keys: BTreeSet<&String> = now.keys().chain(before.keys()).collect();
        let differs = |key: &&&String| now.get(**key) != before.get(**key);
        let Some(key) = keys.iter().find(differs) else { return Ok(()) };
        let shown =
            |settings: &Map<String, Value>| settings.get(*key).map(Value::to_string).unwrap_or_default();
        let (before, now) = (shown(before), shown(now));
        Err(RatesError::OtherCampaign { path: self.path.clone(), key: (*key).clone(), before, now })
    }

    /// Writes the first line, and the turns that are known.
    pub fn begin(&mut self, largest_load: f64) -> Result<(), RatesError> {
        self.largest_load = Some(largest_load);
        let (settings, hosts) = (self.settings.clone(), self.hosts.clone());
        let start = CampaignStart { settings, hosts, largest_load };
        let lines = std::iter::once(serde_json::to_string(&start))
            .chain(self.finished.iter().map(serde_json::to_string))
            .collect::<Result<Vec<String>, _>>();
        let written = lines.map_err(Into::into).and_then(|lines| {
            replace(&self.path, &(lines.join("\n") + "\n"))?;
            File::options().append(true).open(&self.path)
        });
        self.file = Some(written.map_err(|error| RatesError::Archive { path: self.path.clone(), error })?);
        Ok(())
    }

    /// What the generator holds, if the campaign has begun before.
    pub fn largest_load(&self) -> Option<f64> {
        self.largest_load
    }

    pub fn finished(&self) -> &[FinishedTurn] {
        &self.finished
    }

    /// The finished turns, by device and repetition.
    pub fn keys(&self) -> BTreeSet<(String, u32)> {
        self.finished.iter().map(FinishedTurn::key).collect()
    }

    /// Appends a turn.
    pub fn add(&mut self, turn: &FinishedTurn) -> Result<(), RatesError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let line = serde_json::to_string(turn).map_err(Into::into);
        let written = line.and_then(|line| file.write_all(format!("{line}\n").as_bytes()));
        written.map_err(|error| RatesError::Archive { path: self.path.clone(), error })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fullview_lab::search::{
        ReceiveRate, SearchEnd, SearchResults, TrialPurpose, TrialRequest, TrialResult,
    };
    use serde_json::json;

    use super::super::latency_level::LatencyLevel;
    use super::*;

    fn settings(seed: u32) -> Map<String, Value> {
        json!({ "seed": seed, "devices": ["kernel"] }).as_object().unwrap().clone()
    }

    fn turn() -> FinishedTurn {
        let request = TrialRequest { load: 1000.0, duration: 0.1, purpose: TrialPurpose::Initial };
        let result = TrialResult { loss_ratio: 0.25, effective_duration: 0.1 };
        let results = SearchResults {
            end: SearchEnd::Complete,
            goals: vec![],
            trials: vec![Trial { request, result }],
        };
        let mut search = DeviceSearch::new(
            1,
            results,
            ReceiveRate { mean: 900.0, standard_deviation: None, trials: vec![] },
            1000.0,
        );
        let mut delays = Delays::default();
        delays.record(Duration::from_micros(7));
        let device = PathLatency::new(2, delays);
        search.latency.push(LevelLatency { level: LatencyLevel::Overload, load: 1e3, device, link: None });
        FinishedTurn::new("kernel", 1, Some(search), vec![])
    }

    #[test]
    fn a_resumed_campaign_has_its_turns_with_all_trials_and_delays() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = TurnLog::create(folder.path(), settings(1));
        log.begin(5000.0).unwrap();
        let lost = FailedSearch { repetition: 1, reason: "a host was lost".into() };
        log.add(&FinishedTurn { repeated: vec![lost], ..turn() }).unwrap();
        log.add(&FinishedTurn::new("xdp", 1, None, vec![])).unwrap();
        let mut unanswered = FinishedTurn { device: "tc".into(), ..turn() };
        unanswered.search.as_mut().unwrap().unanswered.push("--bursts: no load".into());
        log.add(&unanswered).unwrap();
        let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
        fs::write(folder.path().join(FILE), text + "{\"device\":\"ke").unwrap();
        let resumed = TurnLog::resume(folder.path(), settings(1)).unwrap();
        assert_eq!(resumed.largest_load(), Some(5000.0));
        assert_eq!(
            resumed.keys(),
            [("kernel".to_owned(), 1)].into(),
            "a turn that failed, or has a question without an answer, is made again"
        );
        let search = resumed.finished()[0].search.as_ref().unwrap();
        assert_eq!((search.trials.len(), search.trials[0].result.loss_ratio), (1, 0.25));
        assert_eq!(search.latency[0].device.distribution.count(), 1);
        assert_eq!(search.latency[0].device.lost, 1);
        assert_eq!(resumed.finished()[0].repeated[0].reason, "a host was lost");
        assert_eq!(TurnLog::resume(folder.path(), settings(1)).unwrap().finished().len(), 1, "again");
    }

    #[test]
    fn a_log_of_another_version_or_a_changed_one_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = TurnLog::create(folder.path(), settings(1));
        log.begin(5000.0).unwrap();
        log.add(&turn()).unwrap();
        let path = folder.path().join(FILE);
        let text = fs::read_to_string(&path).unwrap();
        let other = text.replace("\"trials\":", "\"attempts\":");
        assert_ne!(text, other);
        let in_the_middle = text.replacen('\n', "\n{\"device\":\"ke\n", 1);
        for (changed, line) in [(other.clone(), 2), (other.trim_end().to_owned(), 2), (in_the_middle, 2)] {
            fs::write(&path, &changed).unwrap();
            let error = TurnLog::resume(folder.path(), settings(1)).err().unwrap().to_string();
            assert!(error.contains(&format!("{FILE}:{line}: this is no turn")), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), changed, "nothing is lost");
        }
    }

    #[test]
    fn another_campaign_is_not_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let nothing = TurnLog::resume(folder.path(), settings(1)).err().unwrap();
        assert!(nothing.to_string().contains("no campaign to resume"), "{nothing}");
        TurnLog::create(folder.path(), settings(1)).begin(5000.0).unwrap();
        let other = TurnLog::resume(folder.path(), settings(2)).err().unwrap();
        assert!(other.to_string().contains("had seed = 1, and now it is 2"), "{other}");
    }

    #[test]
    fn a_campaign_is_not_resumed_on_hosts_that_have_changed() {
        let folder = tempfile::tempdir().unwrap();
        let hosts = |governor: &str| json!({ "dut: governor": governor }).as_object().unwrap().clone();
        let mut log = TurnLog::create(folder.path(), settings(1));
        log.check_hosts(hosts("powersave")).unwrap();
        log.begin(5000.0).unwrap();
        for _ in 0..2 {
            let mut resumed = TurnLog::resume(folder.path(), settings(1)).unwrap();
            resumed.check_hosts(hosts("powersave")).unwrap();
            let other = resumed.check_hosts(hosts("performance")).err().unwrap().to_string();
            assert!(
                other.contains("had dut: governor = \"powersave\", and now it is \"performance\""),
                "{other}"
            );
        }
    }
}
