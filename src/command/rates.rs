//! `fullview rates`: the highest loads that devices carry between network namespaces.

use std::fs;
use std::io::{self, Write};

use anyhow::{Context, ensure};
use fullview_bench::rates::{
    DeviceName, RatesCampaign, RatesError, RatesReport, TrialArchive, notes, page, table,
};
use fullview_router::error::BadInput;
use fullview_router::{log, progress};

use super::{Exit, campaign};
use crate::args::rates::RatesArgs;

pub fn run(args: &RatesArgs) -> anyhow::Result<Exit> {
    let is_free = args.force || !args.out.join("trials.jsonl").exists();
    let folder = args.out.display();
    ensure!(
        is_free,
        BadInput(format!(
            "{folder}: there are results already; --force replaces them, --out chooses another folder"
        ))
    );
    let wanted = wanted(args)?;
    let mut archive = TrialArchive::create(&args.out)?;
    let stop = campaign::stop_on_signal()?;
    let bar = progress::steps(wanted.searches() as u64);
    let measured = wanted.run(&mut archive, &stop, &bar);
    bar.finish_and_clear();
    match measured {
        Err(RatesError::Stopped) => Ok(Exit::Interrupted),
        Err(error) => Err(error.into()),
        Ok(report) => {
            write(args, &report)?;
            print(args, &report)?;
            Ok(exit(&report))
        }
    }
}

fn wanted(args: &RatesArgs) -> anyhow::Result<RatesCampaign> {
    let devices = if args.devices.is_empty() { DeviceName::USUAL.to_vec() } else { args.devices.clone() };
    Ok(RatesCampaign {
        devices,
        repetitions: args.repetitions,
        seed: args.seed,
        trial_seconds: args.trial_seconds,
        most_seconds: args.most_seconds,
        most_load: args.most_load.map(f64::from),
        program: std::env::current_exe().context("the path of this program")?,
    })
}

fn write(args: &RatesArgs, report: &RatesReport) -> anyhow::Result<()> {
    for (name, text) in [("README.md", page(report)), ("report.json", serde_json::to_string_pretty(report)?)]
    {
        let path = args.out.join(name);
        fs::write(&path, text).with_context(|| format!("{}: cannot write", path.display()))?;
    }
    Ok(())
}

fn print(args: &RatesArgs, report: &RatesReport) -> anyhow::Result<()> {
    if args.json {
        return Ok(writeln!(io::stdout(), "{}", serde_json::to_string_pretty(report)?)?);
    }
    let largest = report.largest_load / 1000.0;
    writeln!(io::stdout(), "{}1000 packets/s; the generator holds {largest:.1}", table(report))?;
    notes(report).iter().for_each(|note| log::line(note));
    log::line(&format!("losses at each load: {}", args.out.join("README.md").display()));
    Ok(())
}

fn exit(report: &RatesReport) -> Exit {
    match (report.interrupted, report.is_complete()) {
        (true, _) => Exit::Interrupted,
        (_, true) => Exit::Done,
        _ => Exit::Invalid,
    }
}
