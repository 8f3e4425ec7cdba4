//! `fullview report`: writes the report of a results folder from its raw data.

use std::io::{self, Write};
use std::path::Path;

use fullview_lab::ReportStatus;

use super::Exit;
use crate::args::ReportArgs;

pub fn run(args: &ReportArgs) -> anyhow::Result<Exit> {
    if args.json {
        let report = fullview_lab::report(&args.folder)?;
        io::stdout().write_all(report.json().as_bytes())?;
        return Ok(exit(report.status(), false));
    }
    if args.raw {
        let report = fullview_lab::report(&args.folder)?;
        io::stdout().write_all(report.raw().as_bytes())?;
        return Ok(exit(report.status(), false));
    }
    if let Some(counters) = &args.overview {
        let report = fullview_lab::report(&args.folder)?;
        let counters: Vec<String> = counters.split_terminator(',').map(str::to_owned).collect();
        io::stdout().write_all(report.overview(&counters)?.as_bytes())?;
        return Ok(exit(report.status(), false));
    }
    write(&args.folder, false, false)
}

/// Writes the report's files into `folder` and prints the answer last, or the report's data as JSON.
pub fn write(folder: &Path, json: bool, gate: bool) -> anyhow::Result<Exit> {
    let report = fullview_lab::report(folder)?;
    report.write(folder)?;
    let mut out = io::stdout().lock();
    if json {
        out.write_all(report.json().as_bytes())?;
    } else {
        writeln!(out, "report: {}", folder.join("README.md").display())?;
        report.verdict_lines().iter().try_for_each(|line| writeln!(out, "{line}"))?;
    }
    Ok(exit(report.status(), gate))
}

fn exit(status: ReportStatus, gate: bool) -> Exit {
    match status {
        ReportStatus::Untrusted if gate => Exit::Untrusted,
        ReportStatus::Incomplete => Exit::Invalid,
        ReportStatus::Worse if gate => Exit::Worse,
        ReportStatus::Untrusted | ReportStatus::Worse | ReportStatus::Ok => Exit::Done,
    }
}
