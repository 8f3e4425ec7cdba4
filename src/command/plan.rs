//! `fullview plan`: what an experiment takes and what it will see.

use std::io::Write;
use std::path::{Path, PathBuf};

use fullview_lab::forecast::{Forecast, POWER, forecast};
use fullview_lab::noise::Noise;
use fullview_lab::{Experiment, Opening, Outcome, Runs};
use serde::Serialize;

use super::{Exit, campaign, noise_table};
use crate::args::PlanArgs;
use crate::command::output::stdout;
use fullview_bench::settings::{Settings, Shape};
use fullview_router::error::BadInput;
use fullview_router::log;

/// Blocks of a pilot.
const PILOT: u32 = 3;
/// A setting that a campaign chooses when it begins.
const SHAPE: &str = "load.shape";

/// Where the noise comes from.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Origin {
    /// Not known.
    Nothing,
    /// A folder of `fullview aa`.
    Folder(PathBuf),
    /// Blocks measured just now.
    Pilot { blocks: u32 },
}

#[derive(Serialize)]
struct PlanDocument<'a> {
    schema: u32,
    title: &'a str,
    runs: Runs,
    power: f64,
    noise_from: &'a Origin,
    /// Whether the copies of one variant differed in that noise; absent without a noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    untrusted: Option<bool>,
    /// Whether it is known in every family if they differed; absent without a noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    judged: Option<bool>,
    plan: &'a Forecast,
}

pub fn run(args: &PlanArgs) -> anyhow::Result<Exit> {
    let mut experiment = campaign::read(&args.experiment)?;
    campaign::set_length(&mut experiment, &args.length, false)?;
    let Some((origin, noise)) = noise(args, &experiment)? else { return Ok(Exit::Interrupted) };
    let plan = forecast(&experiment, noise.as_ref());
    if args.json {
        let (title, runs) = (&experiment.title, experiment.runs);
        let document = PlanDocument {
            schema: 1,
            title,
            runs,
            power: POWER,
            noise_from: &origin,
            untrusted: noise.as_ref().map(Noise::is_untrusted),
            judged: noise.as_ref().map(Noise::is_judged),
            plan: &plan,
        };
        writeln!(stdout(), "{}", serde_json::to_string_pretty(&document)?)?;
    } else {
        print(&experiment, &plan, &origin, noise.as_ref())?;
    }
    Ok(Exit::Done)
}

/// The noise of this machine, and where it comes from; `None` if the user stopped the pilot.
fn noise(
    args: &PlanArgs,
    experiment: &Experiment<Settings>,
) -> anyhow::Result<Option<(Origin, Option<Noise>)>> {
    if let Some(folder) = &args.noise {
        let noise = Noise::of(folder)?;
        let unfit = unfit(&noise, experiment);
        if !unfit.is_empty() {
            return Err(BadInput(misfit(folder, &unfit)).into());
        }
        return Ok(Some((Origin::Folder(folder.clone()), Some(noise))));
    }
    let folder = campaign::default_folder(&args.experiment.experiment, "-aa");
    if let Ok(noise) = Noise::of(&folder) {
        let unfit = unfit(&noise, experiment);
        if unfit.is_empty() {
            return Ok(Some((Origin::Folder(folder), Some(noise))));
        }
        log::line(&format!("{}; it is not used", misfit(&folder, &unfit)));
    }
    if args.no_pilot {
        return Ok(Some((Origin::Nothing, None)));
    }
    Ok(pilot(experiment)?.map(|noise| (Origin::Pilot { blocks: PILOT }, Some(noise))))
}

/// Why a noise is not that of the experiment here. The shape `auto` is whatever the campaign chose.
fn unfit(noise: &Noise, experiment: &Experiment<Settings>) -> Vec<String> {
    let auto = matches!(experiment.subject.load.shape, None | Some(Shape::Auto));
    noise.unfit_for(experiment, if auto { &[SHAPE] } else { &[] })
}

fn misfit(folder: &Path, unfit: &[String]) -> String {
    format!("{} does not show the noise of this experiment here: {}", folder.display(), unfit.join("; "))
}

/// Measures some blocks of the experiment itself; `None` if the user stopped it.
fn pilot(experiment: &Experiment<Settings>) -> anyhow::Result<Option<Noise>> {
    let mut pilot = experiment.clone();
    pilot.runs = Runs::Blocks(PILOT);
    let folder = tempfile::tempdir()?;
    let mut bench = campaign::bench(&mut pilot, None)?;
    let stop = campaign::stop_on_signal()?;
    log::line(&format!("a pilot of {PILOT} blocks:"));
    let outcome = campaign::measure(&pilot, folder.path(), Opening::New, &mut bench, &stop)?;
    Ok(if outcome == Outcome::Interrupted { None } else { Some(Noise::of(folder.path())?) })
}

fn print(
    experiment: &Experiment<Settings>,
    plan: &Forecast,
    origin: &Origin,
    noise: Option<&Noise>,
) -> anyhow::Result<()> {
    let mut out = stdout();
    let Forecast { cells, panels, arms, comparisons, .. } = plan;
    writeln!(out, "{}", experiment.title)?;
    writeln!(
        out,
        "{cells} cells ({} variants, {} families), {comparisons} comparisons",
        experiment.variants.len(),
        experiment.families.len()
    )?;
    writeln!(
        out,
        "a block: {panels} panels, one for each family, in which {arms} arms take turns (the variants, a copy of the \
         baseline, the control); about {:.1} s",
        plan.block_minutes * 60.0
    )?;
    match experiment.runs {
        Runs::Blocks(blocks) => writeln!(out, "{blocks} blocks, as asked")?,
        Runs::UntilDecided => writeln!(
            out,
            "until decided, at most {} blocks and {} minutes; the looks that fit are below",
            plan.most_blocks, plan.most_minutes
        )?,
    }
    match (origin, noise) {
        (Origin::Folder(folder), Some(noise)) => {
            writeln!(out, "noise: from {} of {}", folder.display(), noise.started)?
        }
        (Origin::Pilot { blocks }, Some(_)) => writeln!(
            out,
            "noise: from a pilot of {blocks} blocks just now; `fullview aa` finds it more exactly"
        )?,
        _ => writeln!(
            out,
            "noise: not known, so that the time is only that of the window; measure it by `fullview aa`"
        )?,
    }
    let Some(noise) = noise else { return Ok(writeln!(out, "\n{}", noise_table::times(&plan.looks))?) };
    trust(noise).map_or(Ok(()), |line| writeln!(out, "{line}"))?;
    noise_table::families(noise, &plan.looks).iter().try_for_each(|family| writeln!(out, "{family}"))?;
    let (margin, power) = (plan.margin * 100.0, POWER * 100.0);
    writeln!(
        out,
        "seen: the smallest difference that is told apart from the margin of {margin} % in {power} of 100 campaigns"
    )?;
    Ok(())
}

/// What is wrong with a noise that does not come from a machine known to be trusted.
fn trust(noise: &Noise) -> Option<&'static str> {
    match (noise.is_untrusted(), noise.is_judged()) {
        (true, _) => Some(
            "the machine or set-up could not be trusted when this noise was measured: copies of one variant differed, so \
             that the forecast may be wrong; measure it again by `fullview aa`",
        ),
        (false, false) => Some(
            "whether the machine or set-up could be trusted when this noise was measured is not known: too few blocks are \
             valid",
        ),
        (false, true) => None,
    }
}
