//! `fullview profile`: where the time of each variant goes.

mod folder;
mod measured;
mod page;

use std::io::Write;
use std::path::Path;

use anyhow::ensure;
use fullview_bench::settings::Settings;
use fullview_bench::subject::{is_in_this_process, stages};
use fullview_lab::{Experiment, Family};
use fullview_profile::{Event, Recorder};
use fullview_router::error::BadInput;
use fullview_router::{log, progress};

use super::{Exit, campaign, shown};
use crate::args::ProfileArgs;
use crate::command::output::stdout;
use measured::{MeasuredProfile, Measurement};
use page::ProfileDocument;

/// Seconds that a profile takes at least, unless the user says how many: enough samples for a valid one.
const SECONDS: f64 = 3.0;

pub fn run(args: &ProfileArgs) -> anyhow::Result<Exit> {
    let mut experiment = campaign::read(&args.experiment)?;
    if args.experiment.seconds.is_none() && !args.experiment.smoke {
        experiment.window.measure_s = experiment.window.measure_s.max(SECONDS);
    }
    let default = || campaign::default_folder(&args.experiment.experiment, "-profile");
    let folder = args.out.clone().unwrap_or_else(default);
    ensure!(
        is_in_this_process(&experiment),
        BadInput(
            "some variant forwards in a process of its own, which `fullview profile` does not see".into()
        )
    );
    let families = families(&experiment, &args.families)?;
    folder::prepare(&folder, args.force)?;
    let mut bench = campaign::bench(&mut experiment, None)?;
    let stop = campaign::stop_on_signal()?;
    let recorder = Recorder::new(Event::best())?;
    let bar = progress::steps((families.len() * experiment.variants.len()) as u64);
    let mut profiles: Vec<MeasuredProfile> = Vec::new();
    for family in &families {
        for variant in 0..experiment.variants.len() {
            bar.set_message(experiment.variants[variant].label.clone());
            let measurement =
                Measurement { experiment: &experiment, family, variant, recorder: &recorder, stop: &stop };
            let Some(profile) = measurement.make(&mut bench)? else {
                bar.finish_and_clear();
                log::line("interrupted: a profile is written only as a whole, so nothing is");
                return Ok(Exit::Interrupted);
            };
            profiles.push(profile);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let document = ProfileDocument::new(&experiment, &families, recorder.event(), &profiles, stages());
    folder::write(&folder, &experiment, &families, &profiles, &document)?;
    let are_valid = profiles.iter().all(|one| one.profile.quality.reasons().is_empty());
    let exit = if are_valid || args.experiment.smoke { Exit::Done } else { Exit::Invalid };
    shown(print(args, &folder, &document), exit)
}

fn print(args: &ProfileArgs, folder: &Path, document: &ProfileDocument) -> anyhow::Result<()> {
    if args.json {
        return Ok(writeln!(stdout(), "{}", serde_json::to_string_pretty(document)?)?);
    }
    log::line(&format!("pictures: {}", folder.join("README.md").display()));
    Ok(document.answer().iter().try_for_each(|line| writeln!(stdout(), "{line}"))?)
}

/// The families of the experiment, or those that were named.
fn families(experiment: &Experiment<Settings>, named: &[String]) -> anyhow::Result<Vec<Family>> {
    let all = &experiment.families;
    for name in named {
        let known: Vec<&str> = all.iter().map(|family| family.name.as_str()).collect();
        ensure!(
            known.contains(&name.as_str()),
            BadInput(format!("--families: {name:?} is none of {}", known.join(", ")))
        );
    }
    let is_wanted = |family: &&Family| named.is_empty() || named.contains(&family.name);
    Ok(all.iter().filter(is_wanted).cloned().collect())
}
