//! The answer of the campaign in plain sentences, best first. The terminal shows them last, the report first.

use crate::stats::{Advice, Effect, Judgement, Verdict};

use super::comparisons::ComparisonResult;
use super::copies::CopyResult;
use super::number::{counted, interval, part, percent, ratio, signed_percent, time};
use super::phrase::Phrase;
use super::results::Results;
use super::turns::FamilyTurns;

/// From this ratio on, a difference is said as "1.50 × as many"; a smaller one in per cent.
const MANY_TIMES: f64 = 1.5;

/// A sentence for each comparison, family by family, the best variant first; then the losses.
pub(super) fn sentences(results: &Results) -> Vec<String> {
    let families = 0..results.campaign.experiment.families.len();
    families.flat_map(|family| of_family(results, family)).collect()
}

/// What stands above everything else if the same program, measured twice, has two rates.
pub(super) fn untrusted(results: &Results) -> Option<String> {
    let differs = results.judged.copies.iter().filter(|copy| copy.judgement.differs);
    let said = |copy: &CopyResult| {
        let effect = &copy.judgement.effect;
        let (estimate, range) = (signed_percent(effect.estimate), interval(effect.low, effect.high));
        format!("{estimate} ({range}) in {}", results.family(copy.family))
    };
    let said: Vec<String> = differs.map(said).collect();
    (!said.is_empty()).then(|| {
        format!(
            "This machine or set-up cannot be trusted today: the same variant, measured twice in turns, differs by {}.",
            said.join(" and ")
        )
    })
}

/// What stands above the answer if comparisons are judged and the copy, which says whether they can be trusted, is not.
pub(super) fn trust_unknown(results: &Results) -> Option<String> {
    let families: Vec<&str> =
        results.judged.unjudged_copies.iter().map(|family| results.family(*family)).collect();
    (!families.is_empty()).then(|| {
        format!(
            "Whether this machine or set-up can be trusted today is not known: the hidden copy of the baseline could not \
             be judged in {}, because it lacks a valid block or has a rate of zero in one.",
            families.join(" and ")
        )
    })
}

fn of_family(results: &Results, family: usize) -> Vec<String> {
    let mut compared: Vec<&ComparisonResult> =
        results.judged.comparisons.iter().filter(|compared| compared.family == family).collect();
    let rank = |compared: &ComparisonResult| compared.estimate().unwrap_or(f64::NEG_INFINITY);
    compared.sort_by(|one, other| rank(other).total_cmp(&rank(one)));
    let sentences = compared.into_iter().map(|compared| Sentence::of(results, compared).text());
    sentences.chain(losses(results, family)).collect()
}

/// How much of the offered load each variant lost, if one lost anything.
fn losses(results: &Results, family: usize) -> Option<String> {
    let cells = results.judged.cells.of_family(family);
    let mut lost: Vec<(f64, &str)> =
        cells.filter_map(|cell| Some((cell.loss()?, results.spoken(cell.cell.variant)))).collect();
    lost.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let said: Vec<String> = lost.iter().map(|(loss, name)| format!("{name} loses {}", part(*loss))).collect();
    let any = lost.last().is_some_and(|(most, _)| *most > 0.0);
    let title = results.family(family);
    let phrase = results.phrase(family);
    any.then(|| format!("{}of the {} offered, {}", phrase.prefix(title), phrase.noun(title), said.join(", ")))
}

/// The words of one comparison.
struct Sentence<'a> {
    results: &'a Results,
    compared: &'a ComparisonResult,
    variant: &'a str,
    against: &'a str,
    verb: &'a str,
    noun: String,
    prefix: String,
}

impl<'a> Sentence<'a> {
    fn of(results: &'a Results, compared: &'a ComparisonResult) -> Self {
        let (phrase, family): (Phrase<'a>, &str) =
            (results.phrase(compared.family), results.family(compared.family));
        Self {
            results,
            compared,
            variant: results.spoken(compared.comparison.variant),
            against: results.spoken(compared.comparison.against),
            verb: phrase.verb(),
            noun: phrase.noun(family),
            prefix: phrase.prefix(family),
        }
    }

    fn text(&self) -> String {
        let said = match &self.compared.outcome {
            Ok(judgement) => self.judged(judgement),
            Err(reason) => format!("{} against {}, {}: {reason}", self.variant, self.against, self.noun),
        };
        format!("{}{said}{}", self.prefix, self.unfair_turns())
    }

    /// What turns that are refuted cost the two, behind whatever is said of them.
    fn unfair_turns(&self) -> String {
        let ComparisonResult { comparison, family, .. } = self.compared;
        let turns = FamilyTurns::of(&self.results.campaign, *family);
        let members = [comparison.variant, comparison.against];
        let cost = turns.and_then(|turns| turns.unfair_to(&self.results.campaign, members));
        cost.map_or(String::new(), |cost| format!("; but {cost}"))
    }

    fn judged(&self, judgement: &Judgement) -> String {
        match judgement.verdict {
            Verdict::Better | Verdict::Worse => self.different(&judgement.whole),
            Verdict::Equivalent => self.equivalent(&judgement.whole),
            Verdict::Undecided if judgement.settled => self.two_answers(judgement),
            Verdict::Undecided => self.undecided(judgement),
        }
    }

    /// "a forwards 4.25 × as many packets as b (4.14–4.36)", or "5.1 % more packets than b (4.9–5.3 %)".
    fn different(&self, Effect { estimate, low, high, .. }: &Effect) -> String {
        let Self { variant, against, verb, noun, .. } = self;
        let times = 1.0 + estimate;
        if times >= MANY_TIMES || times <= 1.0 / MANY_TIMES {
            let range = format!("{}–{}", ratio(1.0 + low), ratio(1.0 + high));
            return format!("{variant} {verb} {} × as many {noun} as {against} ({range})", ratio(times));
        }
        let (word, near, far) = if *estimate > 0.0 { ("more", *low, *high) } else { ("fewer", -high, -low) };
        let range = format!("{}–{}", ratio(100.0 * near), part(far));
        format!("{variant} {verb} {} {word} {noun} than {against} ({range})", part(estimate.abs()))
    }

    fn equivalent(&self, effect: &Effect) -> String {
        let Self { variant, against, verb, noun, .. } = self;
        let (margin, range) = (percent(self.results.margin()), interval(effect.low, effect.high));
        format!("{variant} {verb} as many {noun} as {against}, to within {margin} ({range})")
    }

    fn undecided(&self, judgement: &Judgement) -> String {
        let advice = self.compared.advice.map(|advice| format!(": {}", self.advised(&advice)));
        format!("{}{}", self.known_and_open(judgement), advice.unwrap_or_default())
    }

    /// What the intervals of an undecided comparison show, and what they leave open.
    fn known_and_open(&self, judgement: &Judgement) -> String {
        let whole = &judgement.whole;
        let range = interval(whole.low, whole.high);
        match (Verdict::of(whole, self.results.margin()), self.direction(whole)) {
            (Verdict::Equivalent, _) => {
                format!("{}, but {}", self.equivalent(whole), self.open_share(judgement))
            }
            (Verdict::Better | Verdict::Worse, _) => {
                format!("{}, but {}", self.different(whole), self.open_share(judgement))
            }
            (Verdict::Undecided, Some(direction)) => {
                let beyond = self.beyond();
                format!("{direction}, but whether{beyond} is undecided ({range}){}", self.untold(judgement))
            }
            (Verdict::Undecided, None) => {
                let Self { variant, against, verb, noun, .. } = self;
                format!(
                    "whether {variant} {verb} more or fewer {noun} than {against} is undecided ({range}){}",
                    self.untold(judgement)
                )
            }
        }
    }

    /// "a forwards fewer packets than b", if the interval excludes 0.
    fn direction(&self, Effect { low, high, .. }: &Effect) -> Option<String> {
        let Self { variant, against, verb, noun, .. } = self;
        let word = if *low > 0.0 { "more" } else { "fewer" };
        (*low > 0.0 || *high < 0.0).then(|| format!("{variant} {verb} {word} {noun} than {against}"))
    }

    /// " by more than 2 %"; nothing if every difference matters.
    fn beyond(&self) -> String {
        let margin = self.results.margin();
        if margin > 0.0 { format!(" by more than {}", percent(margin)) } else { String::new() }
    }

    /// What keeps a comparison undecided whose whole loop is decided.
    fn open_share(&self, judgement: &Judgement) -> String {
        match &judgement.share {
            Some(share) => format!(
                "whether its share of the loop differs{} is undecided ({})",
                self.beyond(),
                interval(share.low, share.high)
            ),
            None => format!("the comparison is undecided{}", self.untold(judgement)),
        }
    }

    /// Why a comparison is undecided that has no share of the loop.
    fn untold(&self, judgement: &Judgement) -> &'static str {
        let lacks_share = self.compared.observed.share.is_some() && judgement.share.is_none();
        if lacks_share {
            ", because a share of the loop is too small to be told apart from the bed"
        } else {
            ""
        }
    }

    fn two_answers(&self, judgement: &Judgement) -> String {
        let Self { variant, against, noun, .. } = self;
        let shown = |effect: &Effect| {
            format!("{} ({})", signed_percent(effect.estimate), interval(effect.low, effect.high))
        };
        let share = judgement.share.as_ref().map(shown).unwrap_or_default();
        format!(
            "{variant} against {against}, {noun}: no single answer, because the whole loop differs by {} and the \
             variant's share of it by {share}; more blocks change nothing",
            shown(&judgement.whole)
        )
    }

    fn advised(&self, advice: &Advice) -> String {
        let difference = percent(advice.difference);
        match advice.blocks {
            Some(blocks) => {
                let seconds = f64::from(blocks) * self.results.campaign.seconds_per_block();
                let blocks = counted(blocks, "more block");
                format!("{blocks} ({}) to tell apart a difference of {difference}", time(seconds))
            }
            None => format!(
                "no number of blocks tells apart a difference of {difference} in this noise: reduce it, or raise the margin"
            ),
        }
    }
}
