//! The length of the turns of a family, how it was found, and what it may cost.

use std::collections::BTreeMap;

use crate::calibration::{Agreement, ArmDifference, Calibration, TriedLength};
use crate::campaign::Campaign;
use crate::record::{PanelRecord, Turns};

use super::number::{percent, signed_percent};

/// The turns of one family.
#[derive(Debug)]
pub(super) struct FamilyTurns<'a> {
    /// The turns of the last panel.
    pub(super) turns: Turns,
    /// How their length was found, and the panel in which; `None` if the experiment sets it.
    found: Option<(&'a Calibration, &'a PanelRecord)>,
}

impl<'a> FamilyTurns<'a> {
    /// The turns of a family of which a panel was made.
    pub(super) fn of(campaign: &'a Campaign, family: usize) -> Option<Self> {
        let turns = campaign.records_of(family).last()?.turns;
        let mut found =
            campaign.records_of(family).filter_map(|record| Some((record.calibration.as_ref()?, record)));
        Some(Self { turns, found: found.next() })
    }

    pub(super) fn calibration(&self) -> Option<&'a Calibration> {
        self.found.map(|(calibration, _)| calibration)
    }

    /// The length that was chosen.
    pub(super) fn chosen(&self) -> Option<&'a TriedLength> {
        self.calibration()?.tried.last()
    }

    /// The names of the arms that were calibrated, by their numbers.
    pub(super) fn arms(&self, campaign: &Campaign) -> BTreeMap<usize, String> {
        let calibrated = self.chosen().into_iter().flat_map(|chosen| &chosen.arms);
        let named = |arm: &ArmDifference| {
            self.found.map(|(_, record)| (arm.arm, arm_name(campaign, record, arm.arm)))
        };
        calibrated.filter_map(named).collect()
    }

    /// Says what the calibration showed of the chosen length.
    pub(super) fn shown(&self) -> Option<String> {
        let tried = match self.calibration()?.tried.len() {
            1 => "One length was tried".into(),
            tried => format!("{tried} lengths were tried, and the shorter ones refuted"),
        };
        let shown = match self.chosen()?.agreement {
            Agreement::Proven => "This one is proven",
            Agreement::Open => "This one is neither refuted nor proven",
            Agreement::Refuted => "This one, the longest, is refuted",
        };
        Some(format!("{tried}. {shown}."))
    }

    /// Says by how much turns that are refuted may change the rates of two members, if it is not shown to be within the
    /// limit.
    pub(super) fn unfair_to(&self, campaign: &Campaign, members: [usize; 2]) -> Option<String> {
        let (calibration, record) = self.found?;
        let chosen = self.chosen().filter(|chosen| chosen.agreement == Agreement::Refuted)?;
        let of = |member: &usize| chosen.arms.iter().find(|arm| arm.arm == record.arm_of(*member));
        let arms = members.iter().filter_map(of).filter(|arm| calibration.leaves_open(arm));
        let arms = arms.map(|arm| difference(campaign, record, arm)).collect::<Vec<_>>().join(", ");
        let length = length(chosen.slice_us);
        (!arms.is_empty())
            .then(|| format!("turns of {length} are not fair to all, and may change these rates: {arms}"))
    }

    /// Says what the length may cost, and whom.
    pub(super) fn cost(&self, campaign: &Campaign) -> String {
        let Some((calibration, record)) = self.found else { return String::new() };
        let Some(chosen) = calibration.tried.last() else { return String::new() };
        let open = chosen.arms.iter().filter(|arm| calibration.leaves_open(arm));
        let arms = open.map(|arm| difference(campaign, record, arm));
        let arms = arms.collect::<Vec<_>>().join(", ");
        let length = length(chosen.slice_us);
        let limit = percent(calibration.limit);
        match chosen.agreement {
            Agreement::Refuted => format!(
                "no length of turns is fair to all; in turns of {length}, the longest, the rate differs from that in long \
                 turns by more than {limit}: {arms}"
            ),
            _ => format!(
                "turns of {length} are not proven to be fair to all: the rate may differ from that in long turns by more \
                 than {limit}: {arms}"
            ),
        }
    }
}

/// The name of an arm with the interval of its difference.
fn difference(campaign: &Campaign, record: &PanelRecord, arm: &ArmDifference) -> String {
    let name = arm_name(campaign, record, arm.arm);
    if arm.high > 1.0 {
        return format!("{name} by an unknown part");
    }
    format!("{name} {} … {}", signed_percent(arm.low), signed_percent(arm.high))
}

/// The name of an arm: the controls come first, then the members, and the last of these is the copy of the baseline.
fn arm_name(campaign: &Campaign, record: &PanelRecord, arm: usize) -> String {
    let variants = &campaign.experiment.variants;
    match arm.checked_sub(record.controls).map(|member| variants.get(member)) {
        None if record.controls == 1 => "the control".into(),
        None => format!("control {arm}"),
        Some(Some(variant)) => variant.spoken().into(),
        Some(None) => format!("the copy of {}", variants[campaign.experiment.baseline()].spoken()),
    }
}

/// Formats microseconds: `500 µs`, `2 ms`.
pub(super) fn length(microseconds: f64) -> String {
    if microseconds < 1000.0 {
        format!("{microseconds:.0} µs")
    } else {
        format!("{} ms", microseconds / 1e3)
    }
}
