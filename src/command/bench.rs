//! `fullview bench`: runs an experiment file, and writes a results folder.

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
    let outcome = campaign::measure(&experiment, &folder, campaign::opening(args), &mut bench, &stop)?;
    let exit = report::write(&folder, args.json, args.gate)?;
    Ok(campaign::end(args, outcome, exit, &folder))
}
