//! `fullview bench`: runs an experiment file, and writes a results folder.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use fullview_lab::{Archive, Bench, Experiment, Opening, Outcome, Window};

use super::{Exit, report};
use crate::args::BenchArgs;
use fullview_bench::progress::CampaignBar;
use fullview_bench::settings::{Kind, Settings, Shape};
use fullview_bench::subject::{RouterBench, measures};
use fullview_bench::workload::every;
use fullview_router::error::BadInput;
use fullview_router::log;

pub fn run(args: &BenchArgs) -> anyhow::Result<Exit> {
    let mut experiment = read(&args.experiment)?;
    override_by_flags(&mut experiment, args)?;
    make_absolute(&mut experiment).context("a path in the experiment cannot be made absolute")?;
    let folder = args.out.clone().unwrap_or_else(|| default_folder(&args.experiment));
    let mut bench = RouterBench::new(&experiment)?;
    settle_shape(&mut experiment, &mut bench, &folder, args.resume)?;
    bench.describe(&experiment)?;
    let mut archive = Archive::open(&folder, &experiment, opening(args))?;
    let stop = stop_on_signal()?;
    bench.conditions().iter().for_each(|line| log::line(&format!("  - {line}")));
    let outcome = {
        let mut bar = CampaignBar::default();
        fullview_lab::run(&experiment, &mut archive, &mut bench, &mut bar, &stop)?
    };
    drop(archive);
    let exit = report::write(&folder, args.json, args.gate)?;
    if outcome == Outcome::Interrupted {
        log::line(&format!("interrupted: what was measured is in {}; --resume goes on", folder.display()));
        return Ok(Exit::Interrupted);
    }
    // A smoke run checks that everything works, not that this machine was quiet enough to measure on.
    Ok(if args.smoke { Exit::Done } else { exit })
}

fn read(path: &Path) -> anyhow::Result<Experiment<Settings>> {
    let text = fullview_router::text_file::read(path)
        .map_err(|error| BadInput(format!("{}: cannot read the experiment: {error}", path.display())))?;
    let mut experiment = Experiment::parse(&path.display().to_string(), &text)?;
    every::expand(&mut experiment);
    experiment.check()?;
    Ok(experiment)
}

fn override_by_flags(experiment: &mut Experiment<Settings>, args: &BenchArgs) -> anyhow::Result<()> {
    experiment.runs = args.runs.unwrap_or(experiment.runs);
    experiment.seed = args.seed.unwrap_or(experiment.seed);
    if let Some(seconds) = args.seconds {
        shorten_window(&mut experiment.window, seconds);
    }
    if let Some(table) = &args.table {
        let table = table.to_str().context("--table: the file's name is not UTF-8")?;
        experiment.subject.table.source = Some(table.to_owned());
    }
    if args.smoke {
        shorten(experiment);
    }
    Ok(experiment.check()?)
}

/// Makes paths absolute, for the recorded experiment may be run again from another folder.
fn make_absolute(experiment: &mut Experiment<Settings>) -> io::Result<()> {
    experiment.subject.make_absolute()?;
    experiment.variants.iter_mut().try_for_each(|variant| variant.set.make_absolute())
}

/// Sets the length of the measurement. Samples become no longer than that.
fn shorten_window(window: &mut Window, seconds: f64) {
    let most = (seconds * 1e3).round().max(1.0) as u64;
    window.measure_s = seconds;
    window.sample_ms = window.sample_ms.map(|sample| sample.min(most));
}

/// Changes an experiment to one short run of each cell on small tables: enough to check that it works.
fn shorten(experiment: &mut Experiment<Settings>) {
    experiment.runs = 1;
    experiment.title = format!("Smoke run, no measurement: {}", experiment.title);
    let window = &mut experiment.window;
    (window.warmup_s, window.settle_s, window.measure_s, window.sample_ms) = (0.02, 0.0, 0.1, Some(20));
    let subject = &mut experiment.subject;
    (subject.table.inet, subject.table.inet6) = (Some(20_000), Some(10_000));
    for traffic in [&mut subject.traffic].into_iter().chain(subject.streams.0.values_mut()) {
        traffic.flows = traffic.flows.map(|flows| flows.min(5_000));
    }
    if measures(experiment, Kind::Lookup) {
        experiment.subject.lookup.keys = Some(1 << 16);
    }
}

fn default_folder(experiment: &Path) -> PathBuf {
    Path::new("results").join(experiment.file_stem().unwrap_or("campaign".as_ref()))
}

fn opening(args: &BenchArgs) -> Opening {
    match (args.resume, args.force) {
        (true, _) => Opening::Resume,
        (_, true) => Opening::Force,
        _ => Opening::New,
    }
}

/// Replaces the shape `auto` by the one that will be used, so that the record names it. A resumed campaign keeps the shape
/// that it began with.
fn settle_shape(
    experiment: &mut Experiment<Settings>,
    bench: &mut RouterBench,
    folder: &Path,
    resume: bool,
) -> anyhow::Result<()> {
    let asked = experiment.subject.load.shape.unwrap_or(Shape::Auto);
    if asked != Shape::Auto || !measures(experiment, Kind::Forward) {
        return Ok(());
    }
    let begun = resume.then(|| read(&folder.join("campaign.toml")).ok()).flatten();
    let shape = match begun.and_then(|before| before.subject.load.shape) {
        Some(shape) => shape,
        None => bench.quieter_shape(experiment)?,
    };
    experiment.subject.load.shape = Some(shape);
    Ok(())
}

/// Makes a flag that Ctrl-C and SIGTERM set. A second signal ends the program at once.
fn stop_on_signal() -> anyhow::Result<Arc<AtomicBool>> {
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
