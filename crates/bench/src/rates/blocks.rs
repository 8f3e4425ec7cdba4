//! Devices against a control, block by block: a repetition is a block, which has each device once in a random order.

use std::fmt::Write;

use fullview_lab::stats::Contrast;

use super::block_contrast::{BlockContrast, BlockDifference};
use super::result::{DeviceRates, DeviceSearch, RatesReport};

const CONFIDENCE: f64 = 0.95;

type Rate = fn(&DeviceSearch) -> Option<f64>;

const RATES: [(&str, Rate); 3] =
    [("NDR", |search| search.ndr), ("PDR", |search| search.pdr), ("MRR", |search| Some(search.mrr))];

/// All rates of all devices but the control.
pub fn contrasts(report: &RatesReport) -> Vec<BlockContrast> {
    let is_control = |device: &&DeviceRates| report.lab.control.as_ref() == Some(&device.device);
    let Some(control) = report.devices.iter().find(is_control) else { return Vec::new() };
    let others = report.devices.iter().filter(|device| !is_control(device));
    others.flat_map(|device| RATES.map(|rate| contrast(control, device, rate))).collect()
}

fn contrast(control: &DeviceRates, device: &DeviceRates, (name, rate): (&str, Rate)) -> BlockContrast {
    let value = |search: &DeviceSearch| rate(search).filter(|rate| *rate > 0.0);
    let pair = |search: &DeviceSearch| {
        let same = control.searches.iter().find(|other| other.repetition == search.repetition)?;
        Some((value(same)?, value(search)?))
    };
    let (baseline, variant): (Vec<f64>, Vec<f64>) = device.searches.iter().filter_map(pair).unzip();
    let effect = Contrast::paired(&baseline, &variant).log_ratio(CONFIDENCE);
    let difference = effect.map(|effect| BlockDifference {
        estimate: effect.estimate,
        low: effect.low,
        high: effect.high,
    });
    BlockContrast { device: device.device.clone(), rate: name.into(), blocks: baseline.len(), difference }
}

/// A section of the page; nothing without a control.
pub fn section(report: &RatesReport) -> String {
    let (contrasts, Some(control)) = (contrasts(report), &report.lab.control) else { return String::new() };
    let mut text = format!(
        "\n## Against {control}\n\nRelative differences from {control} within the blocks, each of which has every device once \
         in a random order, with the interval of 95 % of each (paired, by logarithms; not corrected for their number).\n\n\
         | device | rate | blocks | difference % | interval % |\n| --- | --- | ---: | ---: | --- |\n"
    );
    for BlockContrast { device, rate, blocks, difference } in contrasts {
        let percent = |share: f64| format!("{:+.1}", share * 100.0);
        let cells = difference.map_or(
            ("–".to_owned(), "–".to_owned()),
            |BlockDifference { estimate, low, high }| {
                (percent(estimate), format!("{} to {}", percent(low), percent(high)))
            },
        );
        let _ = writeln!(text, "| {device} | {rate} | {blocks} | {} | {} |", cells.0, cells.1);
    }
    text
}

#[cfg(test)]
mod tests {
    use fullview_lab::search::{ReceiveRate, SearchEnd, SearchResults};

    use super::*;

    fn device(name: &str, mrrs: &[(u32, f64)]) -> DeviceRates {
        let search = |(repetition, mean): &(u32, f64)| {
            let results = SearchResults { end: SearchEnd::Stopped, goals: vec![], trials: vec![] };
            let receive = ReceiveRate { mean: *mean, standard_deviation: None, trials: vec![] };
            DeviceSearch::new(*repetition, results, receive, 1e6)
        };
        DeviceRates {
            device: name.into(),
            description: None,
            searches: mrrs.iter().map(search).collect(),
            failed: vec![],
            repeated: vec![],
        }
    }

    #[test]
    fn only_blocks_with_both_are_compared_and_drift_of_blocks_cancels() {
        let control = device("old", &[(1, 100.0), (2, 200.0), (3, 400.0), (5, 7.0)]);
        let variant = device("new", &[(2, 220.0), (3, 440.0), (4, 1.0), (1, 110.0)]);
        let found = contrast(&control, &variant, ("MRR", |search| Some(search.mrr)));
        assert_eq!(found.blocks, 3);
        let difference = found.difference.unwrap();
        assert!((difference.estimate - 0.1).abs() < 1e-9 && (difference.high - 0.1).abs() < 1e-9);
        let single = contrast(&control, &device("new", &[(1, 110.0)]), ("MRR", |search| Some(search.mrr)));
        assert!(single.blocks == 1 && single.difference.is_none());
        let nothing = contrast(&control, &variant, ("NDR", |search| search.ndr));
        assert_eq!(nothing.blocks, 0);
    }
}
