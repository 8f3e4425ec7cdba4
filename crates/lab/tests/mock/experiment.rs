//! The experiment of the tests, and the settings of its mock subject.

use fullview_lab::{Experiment, Settings};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MockSettings {
    /// Packets per second of the whole loop. With 0 nothing comes out.
    pub rate: Option<f64>,
    /// A wrong member fails its verification.
    pub wrong: Option<bool>,
    /// A member that cannot take part.
    pub refuses: Option<bool>,
    /// This many panels at the beginning are invalid, because of the first member.
    pub invalid_panels: Option<u32>,
    /// Packets per second that are offered; what is above `rate` is lost.
    pub load: Option<f64>,
    /// Share of the rounds in which only this member is slowed down.
    pub disturbed: Option<f64>,
    /// In this panel, counted from 1, nothing comes out of it.
    pub stalls_in: Option<u32>,
    /// In this panel, counted from 1, its output is wrong.
    pub misroutes_in: Option<u32>,
    /// Share of the shortest slice that passes before the member is warm.
    pub short_costs: Option<f64>,
    /// The value of a counter.
    pub counter: Option<f64>,
    /// How much faster its bed is; members of the same speed share a bed.
    pub bed: Option<f64>,
}

impl Settings for MockSettings {
    fn over(self, base: &Self) -> Self {
        Self {
            rate: self.rate.or(base.rate),
            wrong: self.wrong.or(base.wrong),
            refuses: self.refuses.or(base.refuses),
            invalid_panels: self.invalid_panels.or(base.invalid_panels),
            load: self.load.or(base.load),
            disturbed: self.disturbed.or(base.disturbed),
            stalls_in: self.stalls_in.or(base.stalls_in),
            misroutes_in: self.misroutes_in.or(base.misroutes_in),
            short_costs: self.short_costs.or(base.short_costs),
            counter: self.counter.or(base.counter),
            bed: self.bed.or(base.bed),
        }
    }
}

pub const EXPERIMENT: &str = r#"
title = "Impact of a patch on forwarding"
conditions = ["2 static routes"]
runs = 4
seed = 1
families = [{ name = "inet", title = "IPv4" }, "inet6"]
window = { warmup_s = 0.005, measure_s = 0.01 }
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
