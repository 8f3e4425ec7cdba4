//! `fullview table calibrate`: measures every algorithm on this machine, and writes the preferences that follow.

use std::io::Write;

use anyhow::Context;
use comfy_table::presets::NOTHING;
use fullview_bench::placement::{Placement, Role};
use fullview_lab::host::Provenance;
use fullview_table::Family;
use toml::Spanned;

use super::Exit;
use crate::args::CalibrateArgs;
use crate::command::output::{beside, stdout};
use fullview_bench::calibration::{self, Calibrated, Cost, Effort, FORMULA, Row};
use fullview_bench::subject::core_share::CoreShare;
use fullview_router::log;
use fullview_router::preferences::{AlgorithmPoints, Point, Points, PreferencesFile};
use fullview_router::progress;

pub fn run(args: &CalibrateArgs) -> anyhow::Result<Exit> {
    let effort = if args.smoke { Effort::SMOKE } else { Effort::FULL };
    let unwritable = || format!("{}: cannot write the preferences", args.output.display());
    // A folder that cannot be written is reported before minutes are spent. An existing file is kept until all is measured.
    drop(beside(&args.output).with_context(unwritable)?);
    Placement::one_core()?.pin(Role::Router)?;
    let bar = progress::steps(effort.steps() as u64);
    let share = CoreShare::start(1);
    let inet = calibration::family::<u32>(&effort, &bar)?;
    let inet6 = calibration::family::<u128>(&effort, &bar)?;
    let share = share.share();
    bar.finish_and_clear();
    let mut output = beside(&args.output).with_context(unwritable)?;
    output
        .write_all(file(&inet, &inet6, args.smoke, share).to_string().as_bytes())
        .with_context(unwritable)?;
    output.persist(&args.output).with_context(unwritable)?;
    print::<u32>(&inet)?;
    print::<u128>(&inet6)?;
    warn(args.smoke, share);
    Ok(Exit::Done)
}

fn file(inet: &[Row], inet6: &[Row], smoke: bool, core_share: f64) -> PreferencesFile {
    let provenance = Provenance::observe(Vec::new());
    PreferencesFile {
        machine: provenance.host.cpu.unwrap_or_else(|| "an unknown processor".into()),
        date: provenance.started,
        formula: FORMULA.into(),
        smoke,
        core_share,
        inet: algorithms(inet),
        inet6: algorithms(inet6),
    }
}

fn algorithms(rows: &[Row]) -> AlgorithmPoints {
    let mut algorithms = AlgorithmPoints::new();
    for row in rows {
        let entry = algorithms.entry(placeless(row.algorithm.to_owned()));
        entry.or_insert_with(|| Points { points: placeless(Vec::new()) }).points.get_mut().push(point(row));
    }
    algorithms
}

fn point(row: &Row) -> Point {
    let Cost { batch_ns, independent_ns, update_us, bytes } = row.cost;
    let (prefixes, preference) = (placeless(row.prefixes), row.preference);
    Point { prefixes, preference, batch_ns, independent_ns, update_us, bytes }
}

/// A value with an empty place, for it was not read from a file.
fn placeless<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

fn print<A: Calibrated>(rows: &[Row]) -> anyhow::Result<()> {
    let mut lines = comfy_table::Table::new();
    lines.load_style(NOTHING);
    let titles =
        ["family", "prefixes", "algorithm", "batch ns", "independent ns", "update µs", "bytes", "preference"];
    lines.set_header(titles);
    lines.add_rows(rows.iter().map(|row| cells(A::FAMILY, row)));
    Ok(writeln!(stdout(), "{lines}\n")?)
}

fn cells(family: Family, row: &Row) -> [String; 8] {
    let nanoseconds = |ns: f64| format!("{ns:.2}");
    [
        family.to_string(),
        row.prefixes.to_string(),
        row.algorithm.to_owned(),
        nanoseconds(row.cost.batch_ns),
        nanoseconds(row.cost.independent_ns),
        nanoseconds(row.cost.update_us),
        row.cost.bytes.to_string(),
        row.preference.to_string(),
    ]
}

fn warn(smoke: bool, share: f64) {
    if smoke || cfg!(debug_assertions) {
        log::line("a smoke run or a debug build: these figures mean nothing");
    } else if !CoreShare::is_enough(share) {
        log::line(&format!(
            "other work had the core for {:.0} % of the time: calibrate again when it is quiet",
            100.0 * (1.0 - share)
        ));
    }
}
