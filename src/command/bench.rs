//! `fullview bench`: runs an experiment file, and writes a results folder.

use fullview_lab::{Opening, Outcome};

use super::{Exit, against, campaign, report};
use crate::args::BenchArgs;

pub fn run(args: &BenchArgs) -> anyhow::Result<Exit> {
    let mut experiment = campaign::read(&args.experiment)?;
    campaign::set_length(&mut experiment, &args.length, args.experiment.smoke)?;
    if let Some(other) = &args.against {
        return against::run(args, experiment, other);
    }
    let default = || campaign::default_folder(&args.experiment.experiment, "");
    let folder = args.out.clone().unwrap_or_else(default);
    let mut bench = campaign::bench(&mut experiment, args.resume.then_some(&*folder))?;
    let stop = campaign::stop_on_signal()?;
    let outcome = campaign::measure(&experiment, &folder, opening(args), &mut bench, &stop)?;
    let exit = report::write(&folder, args.json, args.gate)?;
    Ok(end(args, outcome, exit, &folder))
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
pub fn end(args: &BenchArgs, outcome: Outcome, exit: Exit, folder: &std::path::Path) -> Exit {
    if outcome == Outcome::Interrupted {
        campaign::interrupted(folder);
        return Exit::Interrupted;
    }
    // A smoke run checks that everything works, not that this machine was quiet enough to measure on.
    if args.experiment.smoke { Exit::Done } else { exit }
}
