//! `fullview report`: writes the report of a results folder from its raw data.

use std::io::Write;
use std::path::Path;

use fullview_lab::{Report, ReportStatus};

use super::{Exit, shown};
use crate::args::ReportArgs;
use crate::command::output::stdout;

pub fn run(args: &ReportArgs) -> anyhow::Result<Exit> {
    let printed = |text: &dyn Fn(&Report) -> anyhow::Result<String>| {
        let report = fullview_lab::report(&args.folder)?;
        let text = text(&report)?;
        shown(stdout().write_all(text.as_bytes()).map_err(Into::into), exit(report.status(), false))
    };
    if args.json {
        return printed(&|report| Ok(report.json().to_owned()));
    }
    if args.raw {
        return printed(&|report| Ok(report.raw().to_owned()));
    }
    if let Some(counters) = &args.overview {
        let counters: Vec<String> = counters.split_terminator(',').map(str::to_owned).collect();
        return printed(&|report| Ok(report.overview(&counters)?));
    }
    write(&args.folder, false, false)
}

/// Writes the report's files into `folder` and prints the answer last, or the report's data as JSON.
pub fn write(folder: &Path, json: bool, gate: bool) -> anyhow::Result<Exit> {
    let report = fullview_lab::report(folder)?;
    report.write(folder)?;
    shown(print(&report, folder, json), exit(report.status(), gate))
}

fn print(report: &Report, folder: &Path, json: bool) -> anyhow::Result<()> {
    let mut out = stdout();
    if json {
        return Ok(out.write_all(report.json().as_bytes())?);
    }
    writeln!(out, "report: {}", folder.join("README.md").display())?;
    Ok(report.verdict_lines().iter().try_for_each(|line| writeln!(out, "{line}"))?)
}

fn exit(status: ReportStatus, gate: bool) -> Exit {
    match status {
        ReportStatus { untrusted: true, .. } | ReportStatus { trust_unknown: true, .. } if gate => {
            Exit::Untrusted
        }
        ReportStatus { worse: true, .. } | ReportStatus { misrouted: true, .. } if gate => Exit::Worse,
        ReportStatus { incomplete: true, .. } | ReportStatus { misrouted: true, .. } => Exit::Invalid,
        _ => Exit::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_that_is_worse_is_not_hidden_by_one_that_was_not_judged() {
        let status = ReportStatus { worse: true, incomplete: true, ..ReportStatus::default() };
        assert_eq!([exit(status, true), exit(status, false)], [Exit::Worse, Exit::Invalid]);
        let untrusted = ReportStatus { untrusted: true, ..status };
        assert_eq!([exit(untrusted, true), exit(untrusted, false)], [Exit::Untrusted, Exit::Invalid]);
        let misrouted = ReportStatus { misrouted: true, ..ReportStatus::default() };
        assert_eq!([exit(misrouted, true), exit(misrouted, false)], [Exit::Worse, Exit::Invalid]);
    }
}
