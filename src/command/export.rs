//! `fullview export`: a campaign's rates as columns that ministat and gnuplot read.

use std::io::Write;

use anyhow::ensure;
use fullview_netbenches::{ExportSeries, export};

use super::{BadInput, Exit};
use crate::args::ExportArgs;
use crate::command::output::stdout;

pub fn run(args: &ExportArgs) -> anyhow::Result<Exit> {
    let report = fullview_lab::report(&args.folder)?;
    let series = report.series().iter().map(|series| ExportSeries {
        variant: series.variant.clone(),
        family: series.family.clone(),
        values: if args.raw { series.raw.clone() } else { series.values.clone() },
    });
    let series: Vec<ExportSeries> = series.collect();
    let measured = series.iter().filter(|series| !series.values.is_empty()).count();
    ensure!(
        measured > 0,
        BadInput(format!("{}: nothing in it is valid, so there is nothing to export", args.folder.display()))
    );
    export(&series, &args.to, args.force)?;
    writeln!(stdout(), "{measured} series in {}", args.to.display())?;
    Ok(Exit::Done)
}
