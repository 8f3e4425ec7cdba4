//! What a noise means for an experiment, as tables for the terminal.

use comfy_table::presets::NOTHING;
use fullview_lab::forecast::{FamilyForecast, ForecastLook};
use fullview_lab::noise::{FamilyNoise, Noise, Spread};

/// What is known of each family, and what is seen in it after so many blocks.
pub fn families(noise: &Noise, looks: &[ForecastLook]) -> Vec<String> {
    let of_family = |family: &FamilyNoise| {
        let seen = looks.iter().filter_map(|look| {
            let seen = look.families.iter().find(|seen| seen.title == family.title)?;
            Some(row(look, seen))
        });
        let mut lines = comfy_table::Table::new();
        lines.load_style(NOTHING);
        let share = if family.subtracts { "of the share" } else { "" };
        lines.set_header(["blocks", "minutes", "half-width", share, "seen"]);
        lines.add_rows(seen);
        format!("{}\n{lines}\n", described(family))
    };
    noise.families.iter().map(of_family).collect()
}

/// Which copies differ from the baseline, and by how much.
pub fn differing(noise: &Noise) -> String {
    let percent = |ratio: f64| format!("{:+.2} %", ratio * 100.0);
    let differing = noise.differing().map(|(family, name, judgement)| {
        let [estimate, low, high] =
            [judgement.effect.estimate, judgement.effect.low, judgement.effect.high].map(percent);
        format!("{name} by {estimate} ({low} to {high}) in {}", family.title)
    });
    differing.collect::<Vec<_>>().join(", ")
}

/// The looks without anything that is seen.
pub fn times(looks: &[ForecastLook]) -> String {
    let mut lines = comfy_table::Table::new();
    lines.load_style(NOTHING);
    lines.set_header(["blocks", "minutes"]);
    lines.add_rows(looks.iter().map(|look| [look.blocks.to_string(), format!("{:.1}", look.minutes)]));
    lines.to_string()
}

fn row(look: &ForecastLook, family: &FamilyForecast) -> [String; 5] {
    let percent = |share: Option<f64>| share.map(|share| format!("{:.2} %", share * 100.0));
    let reach = |share| percent(share).map_or_else(String::new, |percent| format!("±{percent}"));
    [
        look.blocks.to_string(),
        format!("{:.1}", look.minutes),
        reach(family.half_width),
        reach(family.share_half_width),
        percent(family.seen).unwrap_or_else(|| "nothing".into()),
    ]
}

/// The turns, what was left out, and the spread.
fn described(family: &FamilyNoise) -> String {
    let spread = |spread: Option<Spread>| {
        spread.map_or("?".to_owned(), |spread| format!("{:.2} %", spread.stddev.exp_m1() * 100.0))
    };
    let share = format!(", that of their shares of the loop by {}", spread(family.share));
    let invalid =
        if family.invalid > 0 { format!(", {} more are not", family.invalid) } else { String::new() };
    format!(
        "{}: turns of {} ms after {} ms that do not count; {:.1} % of the rounds are left out, because the control was \
         disturbed; from block to block the ratio of two members varies by {}{} (standard deviation; {} blocks are \
         valid{invalid})",
        family.title,
        milliseconds(family.slice_us),
        milliseconds(family.lead_in_us),
        family.lost_rounds * 100.0,
        spread(family.whole),
        if family.subtracts { &*share } else { "" },
        family.blocks,
    )
}

fn milliseconds(microseconds: f64) -> f64 {
    (microseconds / 10.0).round() / 100.0
}
