//! What the commands that measure an experiment share: reading it, changing it by flags, and running it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use fullview_lab::{Archive, Bench, Experiment, ExperimentError, Opening, Outcome, Runs, SliceLimits};

use super::Exit;
use crate::args::{BenchArgs, ExperimentArgs, LengthArgs};
use fullview_bench::progress::CampaignBar;
use fullview_bench::settings::{Kind, Settings, Shape};
use fullview_bench::subject::{RouterBench, check_slice, measures, name_metrics, slice_limits};
use fullview_bench::workload::every;
use fullview_router::error::BadInput;
use fullview_router::log;

/// Reads the experiment and applies the flags.
pub fn read(args: &ExperimentArgs) -> anyhow::Result<Experiment<Settings>> {
    let mut experiment = read_file(&args.experiment)?;
    experiment.seed = args.seed.unwrap_or(experiment.seed);
    experiment.window.measure_s = args.seconds.unwrap_or(experiment.window.measure_s);
    experiment.window.slice_ms = args.slice_ms.or(experiment.window.slice_ms);
    if let Some(table) = &args.table {
        let table = table.to_str().context("--table: the file's name is not UTF-8")?;
        experiment.subject.table.source = Some(table.to_owned());
    }
    let flags = [
        ("--seconds", args.seconds.is_some()),
        ("--slice-ms", args.slice_ms.is_some()),
        ("--seed", args.seed.is_some()),
    ];
    check(&experiment, &flags)?;
    if args.smoke {
        shorten(&mut experiment);
    }
    experiment.check()?;
    make_absolute(&mut experiment).context("a path in the experiment cannot be made absolute")?;
    Ok(experiment)
}

/// Applies the flags that say how long the campaign is. A smoke run has one block, and no other length.
pub fn set_length(
    experiment: &mut Experiment<Settings>,
    length: &LengthArgs,
    smoke: bool,
) -> anyhow::Result<()> {
    if smoke && (length.runs.is_some() || length.minutes.is_some()) {
        return Err(
            BadInput("--smoke measures one short block: leave --runs and --minutes out".into()).into()
        );
    }
    let runs = length.runs.unwrap_or(experiment.runs);
    experiment.runs = if smoke { Runs::Blocks(1) } else { runs };
    experiment.analysis.max_minutes = length.minutes.unwrap_or(experiment.analysis.max_minutes);
    let flags = [("--runs", length.runs.is_some()), ("--minutes", length.minutes.is_some())];
    check(experiment, &flags)?;
    // A smoke run judges nothing.
    if smoke { Ok(()) } else { blamed(experiment.check_first_look(), &flags) }
}

/// Checks an experiment whose file was right before flags changed it: what is wrong now is the value of one of these.
fn check(experiment: &Experiment<Settings>, flags: &[(&str, bool)]) -> anyhow::Result<()> {
    blamed(experiment.check(), flags)
}

/// The outcome of a check, with the flags that were given in place of the file's name.
fn blamed(checked: Result<(), ExperimentError>, flags: &[(&str, bool)]) -> anyhow::Result<()> {
    let Err(error) = checked else { return Ok(()) };
    let given: Vec<&str> = flags.iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| *flag).collect();
    match given[..] {
        [] => Err(error.into()),
        _ => Err(BadInput(format!("{}: {}", given.join(", "), error.message)).into()),
    }
}

fn read_file(path: &Path) -> anyhow::Result<Experiment<Settings>> {
    let text = fullview_router::text_file::read(path)
        .map_err(|error| BadInput(format!("{}: cannot read the experiment: {error}", path.display())))?;
    let mut experiment = Experiment::parse(&path.display().to_string(), &text)?;
    every::expand(&mut experiment);
    experiment.check()?;
    Ok(experiment)
}

/// Makes paths absolute, for the recorded experiment may be run again from another folder.
fn make_absolute(experiment: &mut Experiment<Settings>) -> io::Result<()> {
    experiment.subject.make_absolute()?;
    experiment.variants.iter_mut().try_for_each(|variant| variant.set.make_absolute())
}

/// Changes an experiment to short panels on small tables: enough to check that it works.
fn shorten(experiment: &mut Experiment<Settings>) {
    experiment.title = format!("Smoke run, no measurement: {}", experiment.title);
    let window = &mut experiment.window;
    (window.warmup_s, window.settle_s, window.measure_s) = (0.02, 0.0, 0.05);
    set_turns(experiment);
    let subject = &mut experiment.subject;
    (subject.table.inet, subject.table.inet6) = (Some(20_000), Some(10_000));
    for traffic in [&mut subject.traffic].into_iter().chain(subject.streams.0.values_mut()) {
        traffic.flows = traffic.flows.map(|flows| flows.min(5_000));
    }
    if measures(experiment, Kind::Lookup) {
        experiment.subject.lookup.keys = Some(1 << 16);
    }
    let variants = experiment.variants.iter_mut().map(|variant| &mut variant.set);
    for settings in [&mut experiment.subject].into_iter().chain(variants) {
        let states = &mut settings.filter.states;
        *states = states.map(|states| states.min(1 << 16));
    }
    let changes = &mut experiment.subject.updates.changes;
    *changes = changes.map(|changes| changes.min(5_000));
}

/// Sets what takes longer to find out than a short panel: the shape of a forwarding path, and the length of turns.
fn set_turns(experiment: &mut Experiment<Settings>) {
    let is_auto = experiment.subject.load.shape.is_none_or(|shape| shape == Shape::Auto);
    if is_auto && measures(experiment, Kind::Forward) {
        experiment.subject.load.shape = Some(Shape::OneCore);
    }
    let SliceLimits { shortest, longest } = slice_limits(experiment);
    let [shortest, longest] = [shortest, longest].map(|slice| slice.as_secs_f64() * 1e3);
    let window = &mut experiment.window;
    let slice_ms = window.slice_ms.unwrap_or(1.0).min(window.measure_s * 1e3);
    window.slice_ms = Some(slice_ms.clamp(shortest, longest));
}

/// `results/` and the name of the experiment's file, with `suffix`.
pub fn default_folder(experiment: &Path, suffix: &str) -> PathBuf {
    let mut name = experiment.file_stem().unwrap_or("campaign".as_ref()).to_owned();
    name.push(suffix);
    Path::new("results").join(name)
}

/// Makes the bench of an experiment, settles its shape, and writes the conditions. `begun` is the folder of a campaign
/// that is resumed: it keeps the shape that it began with.
pub fn bench(experiment: &mut Experiment<Settings>, begun: Option<&Path>) -> anyhow::Result<RouterBench> {
    let mut bench = RouterBench::new(experiment)?;
    name_metrics(experiment)?;
    settle_shape(experiment, &mut bench, begun)?;
    check_slice(experiment)?;
    bench.describe(experiment)?;
    Ok(bench)
}

/// Replaces the shape `auto` by the one that will be used, so that the record names it.
fn settle_shape(
    experiment: &mut Experiment<Settings>,
    bench: &mut RouterBench,
    begun: Option<&Path>,
) -> anyhow::Result<()> {
    let asked = experiment.subject.load.shape.unwrap_or(Shape::Auto);
    if asked != Shape::Auto || !measures(experiment, Kind::Forward) {
        return Ok(());
    }
    let shape = match begun.and_then(begun_shape) {
        Some(shape) => shape,
        None => bench.quieter_shape(experiment)?,
    };
    experiment.subject.load.shape = Some(shape);
    Ok(())
}

/// The shape of the campaign in a folder. The record of two builds has a key that an experiment does not have.
fn begun_shape(folder: &Path) -> Option<Shape> {
    let text = fullview_router::text_file::read(&folder.join("campaign.toml")).ok()?;
    let campaign: toml::Table = text.parse().ok()?;
    let shape = campaign.get("subject")?.get("load")?.get("shape")?;
    shape.clone().try_into().ok()
}

/// Measures an experiment into `folder`.
pub fn measure<S: fullview_lab::Settings>(
    experiment: &Experiment<S>,
    folder: &Path,
    opening: Opening,
    bench: &mut dyn Bench<S>,
    stop: &AtomicBool,
) -> anyhow::Result<Outcome> {
    let mut archive = Archive::open(folder, experiment, opening)?;
    bench.conditions().iter().for_each(|line| log::line(&format!("  - {line}")));
    let mut bar = CampaignBar::default();
    Ok(fullview_lab::run(experiment, &mut archive, bench, &mut bar, stop)?)
}

/// Makes a flag that Ctrl-C and SIGTERM set. A second signal ends the program at once.
pub fn stop_on_signal() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if seen.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot watch for Ctrl-C")?;
    Ok(stop)
}

/// What to do with a results folder that has a campaign.
pub fn opening(args: &BenchArgs) -> Opening {
    match (args.resume, args.force) {
        (true, _) => Opening::Resume,
        (_, true) => Opening::Force,
        _ => Opening::New,
    }
}

/// How a campaign ends the program.
pub fn end(args: &BenchArgs, outcome: Outcome, exit: Exit, folder: &Path) -> Exit {
    if outcome == Outcome::Interrupted {
        interrupted(folder);
        return Exit::Interrupted;
    }
    // A smoke run checks that everything works, not that this machine was quiet enough to measure on.
    if args.experiment.smoke { Exit::Done } else { exit }
}

/// Says that a campaign was interrupted.
pub fn interrupted(folder: &Path) {
    log::line(&format!("interrupted: what was measured is in {}; --resume goes on", folder.display()));
}
