//! The tables of `docs/measurements/campaigns.md` are those of the lines beside it, which the example `campaigns` and the lab's
//! simulations printed. ACCEPT=1 writes the tables again.

use std::fs;
use std::path::{Path, PathBuf};

/// Campaigns of ten blocks, of twenty, and of forty with the router alone slowed.
const FILES: [&str; 3] = ["campaigns.csv", "campaigns-20.csv", "campaigns-router.csv"];
/// Whole campaigns on simulated machines.
const SIMULATED: &str = "simulated.csv";
const END: &str = "<!-- end of the figures -->";

/// A campaign, by the columns of the file.
struct Campaign {
    seconds: f64,
    untrusted: bool,
    /// Half of the width of the interval of the copy's difference, as a part of one.
    half_width: f64,
    same: String,
    slowed: String,
}

#[test]
fn the_tables_are_those_of_the_lines() {
    let page = in_folder("campaigns.md");
    let text = fs::read_to_string(&page).unwrap();
    let made =
        FILES.iter().fold(text.clone(), |text, file| with_table(&text, file, &table(&campaigns(file))));
    let made = with_table(&made, SIMULATED, &simulated());
    if std::env::var_os("ACCEPT").is_some_and(|accept| accept == "1") {
        fs::write(&page, &made).unwrap();
    } else {
        assert_eq!(text, made, "ACCEPT=1 writes the tables again");
    }
}

/// The page with the table of this file.
fn with_table(text: &str, file: &str, table: &str) -> String {
    let begin = format!("<!-- the figures of {file} -->\n");
    let (before, rest) = text.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    format!("{before}{begin}{table}{END}{after}")
}

fn in_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/measurements").join(name)
}

fn campaigns(file: &str) -> Vec<Campaign> {
    let text = fs::read_to_string(in_folder(file)).unwrap();
    text.lines().skip(1).map(campaign).collect()
}

fn campaign(line: &str) -> Campaign {
    let [_, seconds, untrusted, half_width, same, slowed, _] =
        line.split(',').collect::<Vec<_>>().try_into().unwrap();
    Campaign {
        seconds: seconds.parse().unwrap(),
        untrusted: untrusted == "true",
        half_width: half_width.parse().unwrap(),
        same: same.into(),
        slowed: slowed.into(),
    }
}

fn table(campaigns: &[Campaign]) -> String {
    let count = |is: fn(&Campaign) -> bool| campaigns.iter().filter(|campaign| is(campaign)).count();
    let of = |value: fn(&Campaign) -> f64, share| quantile(campaigns.iter().map(value).collect(), share);
    let percent = |share| 100.0 * of(|campaign| campaign.half_width, share);
    let widths = format!("{:.2} %, {:.2} %", percent(0.5), percent(0.9));
    let seconds = of(|campaign| campaign.seconds, 0.5);
    let rows = [
        ("campaigns", campaigns.len().to_string()),
        ("in which too few blocks were valid", count(|one| one.half_width.is_nan()).to_string()),
        (
            "in which the same router was judged better or worse",
            count(|one| ["better", "worse"].contains(&one.same.as_str())).to_string(),
        ),
        ("that called the machine untrusted", count(|one| one.untrusted).to_string()),
        ("that found the slowed router worse", count(|one| one.slowed == "worse").to_string()),
        ("that judged the slowed router better or equivalent", count(is_missed).to_string()),
        ("half-width of the copy's interval of 99.5 %, median and 90th percentile", widths),
        ("seconds of a campaign, median", format!("{seconds:.1}")),
    ];
    let lines = rows.map(|(what, figure)| format!("| {what} | {figure} |\n"));
    format!("| | |\n| --- | ---: |\n{}", lines.concat())
}

fn is_missed(campaign: &Campaign) -> bool {
    ["better", "equivalent"].contains(&campaign.slowed.as_str())
}

/// Of those that are numbers.
fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.retain(|value| !value.is_nan());
    values.sort_by(f64::total_cmp);
    let place = (values.len() as f64 * share) as usize;
    values[place.min(values.len() - 1)]
}

/// A row for each question and machine: how often each thing happened.
fn simulated() -> String {
    let text = fs::read_to_string(in_folder(SIMULATED)).unwrap();
    let heads = "| difference | machine | campaigns | verdicts | intervals without the truth, whole loop | share | all found | \
                 copy differs |\n";
    let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let rows: String = lines.iter().map(|line| simulated_row(line)).collect();
    format!("{heads}| --- | --- |{}\n{rows}", " ---: |".repeat(6))
}

fn simulated_row(line: &[&str]) -> String {
    let [_, question, machine, campaigns, counts @ ..] = line else { panic!("{line:?}") };
    let of: f64 = campaigns.parse().unwrap();
    let percent = |count: &&str| format!(" {:.2} % |", 100.0 * count.parse::<f64>().unwrap() / of);
    let shares: String = counts.iter().map(percent).collect();
    format!("| {question} | {machine} | {campaigns} |{shares}\n")
}
