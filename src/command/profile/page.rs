//! What a profile says, as data and as a page.

use std::fmt::Write;

use fullview_bench::settings::Settings;
use fullview_lab::report::escaped;
use fullview_lab::{Experiment, Family};
use fullview_profile::stages::{StageNames, StageShare, shares};
use fullview_profile::{Event, Quality};
use serde::Serialize;

use super::measured::MeasuredProfile;
use crate::command::profile_parts::{percent, row, rule, share_of, stages_of};

/// `report.json` of a profile.
#[derive(Serialize)]
pub struct ProfileDocument {
    schema: u32,
    title: String,
    event: Event,
    profiles: Vec<ProfileEntry>,
}

#[derive(Serialize)]
struct ProfileEntry {
    family: String,
    /// How the family is called in the report.
    #[serde(skip)]
    family_title: String,
    variant: String,
    #[serde(skip)]
    label: String,
    quality: Quality,
    /// Reasons against it.
    reasons: Vec<String>,
    stages: Vec<StageShare>,
    /// Events for each packet, or whatever the metric counts.
    events: Vec<EventPerUnit>,
    #[serde(skip)]
    is_baseline: bool,
}

#[derive(Serialize)]
struct EventPerUnit {
    event: String,
    /// Null where this machine does not count it.
    per_unit: Option<f64>,
}

impl ProfileDocument {
    pub fn new(
        experiment: &Experiment<Settings>,
        families: &[Family],
        event: Event,
        profiles: &[MeasuredProfile],
        stages: &StageNames,
    ) -> ProfileDocument {
        let entry = |one: &MeasuredProfile| {
            let variant = &experiment.variants[one.variant];
            let title =
                families.iter().find(|family| family.name == one.family).map(|family| family.title.clone());
            let per_unit =
                |event: &str| EventPerUnit { event: event.to_owned(), per_unit: one.per_unit(event) };
            ProfileEntry {
                family: one.family.clone(),
                family_title: title.unwrap_or_default(),
                variant: variant.name.clone(),
                label: variant.label.clone(),
                reasons: one.profile.quality.reasons(),
                quality: one.profile.quality.clone(),
                stages: shares(&one.profile.stacks, stages),
                events: one.events.iter().map(|counted| per_unit(&counted.event)).collect(),
                is_baseline: one.variant == experiment.baseline(),
            }
        };
        let profiles = profiles.iter().map(entry).collect();
        ProfileDocument { schema: 1, title: experiment.title.clone(), event, profiles }
    }

    /// A line for each profile: the stages with the most time, or why it is not valid.
    pub fn answer(&self) -> Vec<String> {
        let line = |one: &ProfileEntry| {
            let stages: Vec<String> = one
                .stages
                .iter()
                .take(3)
                .map(|stage| format!("{} {}", stage.stage, percent(stage.share)))
                .collect();
            let doubt = one.reasons.first().map(|reason| format!(" (not valid: {reason})"));
            format!("{}, {}: {}{}", one.label, one.family_title, stages.join(", "), doubt.unwrap_or_default())
        };
        self.profiles.iter().map(line).collect()
    }

    /// The page: for each family a table of stages, with the pictures.
    pub fn page(&self) -> Result<String, std::fmt::Error> {
        let mut page = format!("# Where the time goes: {}\n\n", escaped(&self.title));
        writeln!(
            page,
            "{} Profiled runs are not measured runs: the rates of a campaign are made without a profiler.",
            self.event.describe()
        )?;
        let mut families: Vec<&str> = self.profiles.iter().map(|one| one.family.as_str()).collect();
        families.dedup();
        for family in families {
            let of_family = self.profiles.iter().filter(|one| one.family == family);
            self.family(&mut page, &of_family.collect::<Vec<_>>())?;
        }
        Ok(page)
    }

    fn family(&self, page: &mut String, profiles: &[&ProfileEntry]) -> std::fmt::Result {
        writeln!(page, "\n## {}\n", escaped(&profiles[0].family_title))?;
        let labels: Vec<&str> = profiles.iter().map(|one| one.label.as_str()).collect();
        page.push_str(&row("stage, share of the time", labels.iter().map(|label| Some(escaped(label)))));
        page.push_str(&rule(labels.len()));
        for stage in stages_of(profiles.iter().map(|one| &one.stages[..])) {
            page.push_str(&row(&escaped(&stage), profiles.iter().map(|one| share_of(&one.stages, &stage))));
        }
        for event in profiles[0].events.iter().map(|one| &one.event) {
            let each = |one: &&ProfileEntry| one.events.iter().find(|known| known.event == *event)?.per_unit;
            if profiles.iter().any(|one| each(one).is_some()) {
                page.push_str(&row(
                    &format!("{event} each"),
                    profiles.iter().map(|one| each(one).map(count)),
                ));
            }
        }
        page.push_str(&row(
            "flame graph",
            profiles.iter().map(|one| Some(link(picture(&one.family, &one.variant)))),
        ));
        let difference =
            |one: &&ProfileEntry| (!one.is_baseline).then(|| link(difference(&one.family, &one.variant)));
        page.push_str(&row("difference from the baseline", profiles.iter().map(difference)));
        writeln!(page)?;
        profiles.iter().try_for_each(|one| sampled(page, one))
    }
}

fn sampled(page: &mut String, one: &ProfileEntry) -> std::fmt::Result {
    let Quality { samples, seconds, busy, whole, .. } = &one.quality;
    let doubts: String = one.reasons.iter().map(|reason| format!("; **not valid: {reason}**")).collect();
    writeln!(
        page,
        "- {}: {samples} samples in {seconds:.1} s, on its core for {} of the time, {} of the stacks whole{doubts}",
        escaped(&one.label),
        percent(*busy),
        percent(*whole)
    )
}

fn link(file: String) -> String {
    format!("[{file}]({file})")
}

fn count(count: f64) -> String {
    if count > 0.0 && count < 0.001 { "< 0.001".into() } else { format!("{count:.3}") }
}

/// The file of a flame graph.
pub fn picture(family: &str, variant: &str) -> String {
    format!("{family}-{variant}.svg")
}

/// The file of a variant's difference from the baseline.
pub fn difference(family: &str, variant: &str) -> String {
    format!("{family}-{variant}-difference.svg")
}
