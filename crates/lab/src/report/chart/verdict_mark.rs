//! The marks of the verdicts, which differ in form and colour, and the legend of a forest plot.

use plotters::style::RGBColor;

use super::forest::Forest;
use super::page::{Mark, MarkForm, PALE};
use crate::stats::Verdict;

/// The order of the verdicts in the legend.
const VERDICTS: [(Verdict, &str); 4] = [
    (Verdict::Better, "better"),
    (Verdict::Equivalent, "equivalent"),
    (Verdict::Worse, "worse"),
    (Verdict::Undecided, "undecided"),
];
/// The zone in which a difference does not matter: paler than any line on it.
pub(super) const BAND: RGBColor = RGBColor(0xdf, 0xe6, 0xf5);

pub(super) fn mark(verdict: Verdict) -> Mark {
    match verdict {
        Verdict::Better => Mark { colour: RGBColor(0x2f, 0x8f, 0x5b), form: MarkForm::Up },
        Verdict::Worse => Mark { colour: RGBColor(0xc4, 0x4e, 0x52), form: MarkForm::Down },
        Verdict::Equivalent => Mark::solid(RGBColor(0x4a, 0x6f, 0xc4)),
        Verdict::Undecided => Mark { colour: RGBColor(0x75, 0x75, 0x75), form: MarkForm::HollowSquare },
    }
}

/// The names and marks of the verdicts that occur, of the margin, and of the pale intervals.
pub(super) fn names(forest: &Forest) -> Vec<(&str, Mark)> {
    let occurs = |verdict: Verdict| forest.rows().any(|row| row.verdict == verdict);
    let verdicts = VERDICTS.into_iter().filter(|(verdict, _)| occurs(*verdict));
    let has_margin = forest.margin > 0.0;
    let has_shares = forest.rows().any(|row| row.share.is_some());
    let margin = has_margin.then_some((forest.margin_label.as_str(), Mark::solid(BAND)));
    let share = has_shares.then_some((forest.share_label.as_str(), Mark::solid(PALE)));
    verdicts.map(|(verdict, name)| (name, mark(verdict))).chain(margin).chain(share).collect()
}
