//! A question to ask a mock, and its settings.

use fullview_lab::{Experiment, Settings};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knobs {
    pub rate: Option<f64>,
    pub wrong: Option<bool>,
    /// The first so many runs are invalid.
    pub invalid_runs: Option<u32>,
}

impl Settings for Knobs {
    fn over(self, base: &Self) -> Self {
        Self {
            rate: self.rate.or(base.rate),
            wrong: self.wrong.or(base.wrong),
            invalid_runs: self.invalid_runs.or(base.invalid_runs),
        }
    }
}

pub const QUESTION: &str = r#"
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

pub fn experiment(text: &str) -> Experiment<Knobs> {
    Experiment::parse("question.toml", text).unwrap_or_else(|error| panic!("{error}"))
}
