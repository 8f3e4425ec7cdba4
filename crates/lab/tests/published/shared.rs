//! Compares the data in the tree with the originals in the folder `../shared` beside the workspace. Without that folder
//! these tests print that they were skipped; no other test needs it.

use std::fs;
use std::path::PathBuf;

use fullview_lab::ministat::Set;
use fullview_testnet::shared::data;

use super::blocks::{BENCHMARKS, Block, REPORTS, as_published, read};

#[derive(serde::Deserialize)]
struct Original {
    source: String,
    labels: Vec<String>,
    data: Vec<Vec<String>>,
    separate_bars: bool,
    width: usize,
    text: String,
}

impl Original {
    fn block(self) -> Block {
        assert_eq!((self.separate_bars, self.width), (true, 74), "{}", self.source);
        let sets =
            self.labels.into_iter().zip(self.data).map(|(label, figures)| set(label, &figures)).collect();
        Block { source: self.source, sets, text: as_published(&self.text) }
    }
}

fn set(label: String, figures: &[impl AsRef<str>]) -> Set {
    Set { label, values: figures.iter().map(|figure| figure.as_ref().parse().unwrap()).collect() }
}

#[test]
fn the_benchmarks_are_those_published() {
    let Some(cases) = data("ministat/cases.json") else { return };
    let cases = fs::read_to_string(cases).unwrap();
    let originals: Vec<Original> = serde_json::from_str(&cases).unwrap();
    let originals: Vec<Block> = originals.into_iter().map(Original::block).collect();
    assert_eq!(read(BENCHMARKS), originals);
}

/// Each report with the folders of its series, and the names of the series in the order of the report's sets.
const SERIES: [(&str, &[&str], &[&str]); 2] = [
    (
        "000-xeon16-t580-two-static-routes",
        &["000-xeon16-t580-two-static-routes"],
        &["r368287", "r368287D27401v2", "r368606", "r368606D27401v3", "r368606D27401v4"],
    ),
    (
        "003-xeon16-t580-full-view-D27401-D27412",
        &["003-xeon16-t580-full-view-D27401", "003-xeon16-t580-full-view-D27401-D27412"],
        &["r368766", "r368766D27401v80909", "r368766D27401D27412"],
    ),
];

#[test]
fn the_reports_are_those_published() {
    let Some(reports) = data("netbenches") else { return };
    let families = [("IPv4", "inet4"), ("IPv6", "inet6")];
    let mut kept = read(REPORTS).into_iter();
    for (report, folders, names) in SERIES {
        let folders: Vec<PathBuf> = folders.iter().map(|name| reports.join(name)).collect();
        let readme = fs::read_to_string(reports.join(report).join("README.md")).unwrap();
        for (title, family) in families {
            let kept = kept.next().unwrap();
            assert_eq!(kept.source, format!("{report} {title}"));
            assert_eq!(kept.text, super::fenced_block(&readme, title));
            assert_eq!(
                figures(&kept),
                names.iter().map(|name| series(&folders, name, family)).collect::<Vec<_>>()
            );
        }
    }
    assert!(kept.next().is_none());
}

fn figures(block: &Block) -> Vec<Vec<f64>> {
    block.sets.iter().map(|set| set.values.clone()).collect()
}

/// The values of one series, from the folder that has it.
fn series(folders: &[PathBuf], name: &str, family: &str) -> Vec<f64> {
    let file = format!("{name}.{family}.pps");
    let text = folders.iter().find_map(|folder| fs::read_to_string(folder.join(&file)).ok()).expect(&file);
    text.lines().map(|line| line.trim().parse().expect(line)).collect()
}
