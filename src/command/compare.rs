//! `fullview compare`: compares two results folders.

use std::io::Write;

use fullview_lab::compare::{ComparedCell, FolderComparison, compare};
use fullview_lab::stats::{Effect, Verdict};

use super::{Exit, shown};
use crate::args::CompareArgs;
use crate::command::output::stdout;

pub fn run(args: &CompareArgs) -> anyhow::Result<Exit> {
    let compared = compare(&args.before, &args.after)?;
    let written = if args.json { json(&compared) } else { print(&compared) };
    let verdicts: Vec<Option<Verdict>> = compared.cells.iter().map(|cell| cell.verdict).collect();
    let is_right = [&compared.before, &compared.after].map(|side| side.misrouted.is_empty());
    shown(written, exit(is_trusted(&compared), is_right, &verdicts, args.gate))
}

fn json(compared: &FolderComparison) -> anyhow::Result<()> {
    Ok(writeln!(stdout(), "{}", serde_json::to_string_pretty(compared)?)?)
}

/// The code for verdicts, of which those that are `None` could not be given, and for outputs that were right before and after.
fn exit(is_trusted: bool, is_right: [bool; 2], verdicts: &[Option<Verdict>], gate: bool) -> Exit {
    match () {
        () if gate && !is_trusted => Exit::Untrusted,
        () if gate && (verdicts.contains(&Some(Verdict::Worse)) || !is_right[1]) => Exit::Worse,
        () if verdicts.contains(&None) || is_right != [true; 2] => Exit::Invalid,
        () => Exit::Done,
    }
}

/// Whether both campaigns are known to be of machines that can be trusted.
fn is_trusted(compared: &FolderComparison) -> bool {
    compared.untrusted.is_empty() && compared.trust_unknown.is_empty()
}

fn print(compared: &FolderComparison) -> anyhow::Result<()> {
    let mut out = stdout();
    let FolderComparison { before, after, weaker, left_out, untrusted, trust_unknown, cells, .. } = compared;
    let [from, to] = [before, after].map(|side| (side.folder.display(), &side.title));
    writeln!(out, "before: {} ({})\nafter:  {} ({})", from.0, from.1, to.0, to.1)?;
    writeln!(out, "\nThis is weaker than one campaign in which both take turns:")?;
    weaker.iter().try_for_each(|why| writeln!(out, "  - {why}"))?;
    left_out.iter().try_for_each(|what| writeln!(out, "  - left out: {what}"))?;
    writeln!(out)?;
    untrusted.iter().try_for_each(|why| writeln!(out, "not to be trusted: {why}"))?;
    trust_unknown.iter().try_for_each(|why| writeln!(out, "not known to be trusted: {why}"))?;
    for (when, side) in [("before", before), ("after", after)] {
        side.misrouted.iter().try_for_each(|what| writeln!(out, "{when}: {what}"))?;
    }
    let FolderComparison { metric, margin, .. } = compared;
    writeln!(out, "rates: {metric}, each over its control in its own folder; margin {} %", margin * 100.0)?;
    cells.iter().try_for_each(|cell| writeln!(out, "{}", line(cell)))?;
    Ok(())
}

/// The answer about one variant in one family.
fn line(cell: &ComparedCell) -> String {
    let ComparedCell { label, family, blocks: [before, after], control, whole, share, verdict, .. } = cell;
    let (Some(verdict), Some(whole)) = (verdict, whole) else {
        return format!("{label}, {family}: not judged, with {before} valid blocks before and {after} after");
    };
    let share = share.map(|share| format!("; its share of the loop {}", times(&share))).unwrap_or_default();
    let control = control.map(|control| format!("; the control {:.3} ×", 1.0 + control)).unwrap_or_default();
    format!(
        "{label}, {family}: {verdict}, {} the rate before{share}{control}; {before} and {after} blocks",
        times(whole)
    )
}

/// A relative difference as a factor with its interval.
fn times(effect: &Effect) -> String {
    format!("{:.3} × ({:.3}–{:.3})", 1.0 + effect.estimate, 1.0 + effect.low, 1.0 + effect.high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_that_is_worse_is_not_hidden_by_one_that_was_not_judged() {
        let verdicts = [None, Some(Verdict::Worse), Some(Verdict::Better)];
        let code = |is_trusted, gate| exit(is_trusted, [true; 2], &verdicts, gate);
        assert_eq!([code(true, true), code(true, false)], [Exit::Worse, Exit::Invalid]);
        assert_eq!(code(false, true), Exit::Untrusted);
    }

    #[test]
    fn a_variant_whose_output_was_wrong_is_not_hidden_by_its_rate() {
        let code = |is_right, gate| exit(true, is_right, &[Some(Verdict::Better)], gate);
        assert_eq!([code([true, false], true), code([true, false], false)], [Exit::Worse, Exit::Invalid]);
        assert_eq!([code([false, true], true), code([true; 2], true)], [Exit::Invalid, Exit::Done]);
    }
}
