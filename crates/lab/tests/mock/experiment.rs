//! The experiment of the tests, and the settings of its mock subject.

use fullview_lab::{Experiment, Settings};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MockSettings {
    pub rate: Option<f64>,
    pub wrong: Option<bool>,
    /// This many runs at the beginning are invalid.
    pub invalid_runs: Option<u32>,
}

impl Settings for MockSettings {
    fn over(self, base: &Self) -> Self {
        Self {
            rate: self.rate.or(base.rate),
            wrong: self.wrong.or(base.wrong),
            invalid_runs: self.invalid_runs.or(base.invalid_runs),
        }
    }
}

pub const EXPERIMENT: &str = r#"
title = "Impact of a patch on forwarding"
conditions = ["2 static routes"]
runs = 4
seed = 1
families = [{ name = "inet", title = "IPv4" }, "inet6"]
window = { warmup_s = 0.5, measure_s = 2.0 }
subject = { rate = 1000000.0 }

[[variants]]
name = "before"
label = "r368766"

[[variants]]
name = "after"
label = "r368766 with the patch"
set = { rate = 1050000.0 }
"#;

pub fn parse(text: &str) -> Experiment<MockSettings> {
    Experiment::parse("experiment.toml", text).unwrap_or_else(|error| panic!("{error}"))
}
