//! `fullview aa`: the noise floor of this machine for an experiment.

use std::io::Write;

use fullview_lab::forecast::{ForecastLook, POWER, forecast, seen_after};
use fullview_lab::noise::{Noise, copies_of_baseline};
use fullview_lab::{Experiment, Opening, Outcome, Runs};
use serde::Serialize;

use super::{Exit, campaign, noise_table, shown};
use crate::args::AaArgs;
use crate::command::output::stdout;
use fullview_bench::settings::Settings;
use fullview_router::log;

/// The numbers of blocks that are shown.
const SHOWN: [u32; 4] = [5, 10, 20, 40];

#[derive(Serialize)]
struct AaDocument<'a> {
    schema: u32,
    title: &'a str,
    untrusted: bool,
    judged: bool,
    comparisons: usize,
    margin: f64,
    power: f64,
    noise: &'a Noise,
    blocks: &'a [ForecastLook],
}

pub fn run(args: &AaArgs) -> anyhow::Result<Exit> {
    let mut experiment = campaign::read(&args.experiment)?;
    let blocks = if args.experiment.smoke { args.blocks.min(2) } else { args.blocks };
    let mut copies = copies_of_baseline(&experiment, args.copies.into(), blocks);
    copies.check()?;
    let default = || campaign::default_folder(&args.experiment.experiment, "-aa");
    let folder = args.out.clone().unwrap_or_else(default);
    let mut bench = campaign::bench(&mut copies, None)?;
    let opening = if args.force { Opening::Force } else { Opening::New };
    let stop = campaign::stop_on_signal()?;
    let outcome = campaign::measure(&copies, &folder, opening, &mut bench, &stop)?;
    let noise = Noise::of(&folder)?;
    experiment.runs = Runs::UntilDecided;
    experiment.analysis.first_look = None;
    let looks = looks(&experiment, &noise);
    let written = if args.json { json } else { print }(&experiment, &noise, &looks);
    let exit = shown(written, exit(&noise, args.experiment.smoke))?;
    if outcome == Outcome::Interrupted {
        log::line(&format!("interrupted: {} has the blocks that were measured", folder.display()));
        return Ok(Exit::Interrupted);
    }
    Ok(exit)
}

/// A smoke run checks that everything works, not that this machine can be trusted.
fn exit(noise: &Noise, is_smoke: bool) -> Exit {
    match () {
        () if is_smoke => Exit::Done,
        () if noise.is_untrusted() => Exit::Untrusted,
        () if !noise.is_judged() => Exit::Invalid,
        () => Exit::Done,
    }
}

/// What is seen after so many blocks of the experiment.
fn looks(experiment: &Experiment<Settings>, noise: &Noise) -> Vec<ForecastLook> {
    let minutes = forecast(experiment, Some(noise)).block_minutes;
    let look = |blocks: u32| ForecastLook {
        blocks,
        minutes: f64::from(blocks) * minutes,
        families: seen_after(experiment, noise, blocks),
    };
    SHOWN.map(look).into()
}

fn json(experiment: &Experiment<Settings>, noise: &Noise, looks: &[ForecastLook]) -> anyhow::Result<()> {
    let document = AaDocument {
        schema: 2,
        title: &experiment.title,
        untrusted: noise.is_untrusted(),
        judged: noise.is_judged(),
        comparisons: comparisons(experiment),
        margin: experiment.analysis.margin,
        power: POWER,
        noise,
        blocks: looks,
    };
    Ok(writeln!(stdout(), "{}", serde_json::to_string_pretty(&document)?)?)
}

fn print(experiment: &Experiment<Settings>, noise: &Noise, looks: &[ForecastLook]) -> anyhow::Result<()> {
    let mut out = stdout();
    let baseline = &experiment.variants[experiment.baseline()].label;
    writeln!(out, "{}: copies of {baseline}, so that every difference is noise", experiment.title)?;
    noise_table::families(noise, looks).iter().try_for_each(|family| writeln!(out, "{family}"))?;
    writeln!(
        out,
        "half-width: of the interval of one of the experiment's {} comparisons; seen: the smallest difference that is told \
         apart from the margin of {} % in {} of 100 campaigns",
        comparisons(experiment),
        experiment.analysis.margin * 100.0,
        POWER * 100.0
    )?;
    if noise.is_untrusted() {
        let differing = noise_table::differing(noise);
        writeln!(
            out,
            "this machine or set-up cannot be trusted today: copies of one variant differ: {differing}"
        )?;
    }
    if !noise.is_judged() {
        writeln!(out, "whether copies of one variant differ is not known: too few blocks are valid")?;
    }
    Ok(())
}

fn comparisons(experiment: &Experiment<Settings>) -> usize {
    experiment.families.len() * experiment.comparisons().len()
}
