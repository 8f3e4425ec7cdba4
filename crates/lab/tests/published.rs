//! A published report, made again from its published values: its ministat blocks must come out as they stand there.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops where it cannot go on"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fullview_lab::sample::SCHEMA;
use fullview_lab::{Reasons, RunRecord, Validity, report};

const CAMPAIGN: &str = r#"
title = "Comparing D27401 impact on forwarding performance:"
conditions = ["5000 flows of smallest UDP packets", "Traffic load at 42.49Mpps", "netstat -rn4 | wc -l : 712793"]
runs = 5
seed = 1
families = [{ name = "inet", title = "IPv4" }, { name = "inet6", title = "IPv6" }]
window = { warmup_s = 10.0, measure_s = 50.0 }
analysis = { imix_axis = true }

[[variants]]
name = "r368766"
label = "r368766"

[[variants]]
name = "r368766D27401v80909"
label = "r368766 with D27401 (diff 80909)"

[[variants]]
name = "r368766D27401D27412"
label = "r368766 with D27401 and D27412"
"#;

const HOST: &str = r#"{
  "started": "2020-12-18T00:00:00Z", "command": ["bench-lab.sh"],
  "build": { "version": "0.1.0", "rustc": null, "commit": null, "debug": false },
  "host": { "cpu": "Intel Xeon E5-2697Av4", "cores": 16, "threads": 32, "kernel": "FreeBSD r368766" },
  "conditions": []
}"#;

fn published() -> Option<[PathBuf; 2]> {
    let folder = |name: &str| support::shared(&format!("data/netbenches/003-xeon16-t580-full-view-{name}"));
    Some([folder("D27401")?, folder("D27401-D27412")?])
}

/// The values of one series, from whichever folder has it.
fn values(folders: &[PathBuf; 2], variant: &str, family: &str) -> Vec<f64> {
    let name = format!("{variant}.{}.pps", if family == "inet" { "inet4" } else { family });
    let text = folders.iter().find_map(|folder| fs::read_to_string(folder.join(&name)).ok()).expect(&name);
    text.lines().map(|line| line.trim().parse().expect(line)).collect()
}

fn record(variant: &str, family: &str, block: usize, value: f64) -> RunRecord {
    RunRecord {
        schema: SCHEMA,
        block: u32::try_from(block).unwrap(),
        position: 0,
        attempt: 0,
        variant: variant.into(),
        family: family.into(),
        seed: 0,
        started: "2020-12-18T00:00:00Z".into(),
        value,
        samples: Vec::new(),
        counters: BTreeMap::new(),
        validity: Reasons::from_iter([Validity::Ok]),
        events: Vec::new(),
    }
}

fn archive(folder: &Path, published: &[PathBuf; 2]) {
    let mut journal = String::new();
    for variant in ["r368766", "r368766D27401v80909", "r368766D27401D27412"] {
        for family in ["inet", "inet6"] {
            for (block, value) in values(published, variant, family).into_iter().enumerate() {
                journal += &serde_json::to_string(&record(variant, family, block, value)).unwrap();
                journal.push('\n');
            }
        }
    }
    fs::write(folder.join("runs.jsonl"), journal).unwrap();
    fs::write(folder.join("campaign.toml"), CAMPAIGN).unwrap();
    fs::write(folder.join("host.json"), HOST).unwrap();
}

/// The text from a family's title to the end of its block; published text has lost tabs and trailing blanks.
fn block(readme: &str, title: &str) -> String {
    let (_, from) = readme.split_once(&format!("\n{title}:\n```\n")).expect(title);
    let (block, _) = from.split_once("\n```\n").expect("an end");
    block.replace('\t', "        ").lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_published_blocks_come_out_as_published() {
    let Some(published) = published() else { return };
    let folder = tempfile::tempdir().unwrap();
    archive(folder.path(), &published);
    let made = report(folder.path()).unwrap();
    let theirs = fs::read_to_string(published[1].join("README.md")).unwrap();
    for family in ["IPv4", "IPv6"] {
        assert_eq!(block(made.readme(), family), block(&theirs, family));
    }
    // What the published report does not say: one bad run of five makes its +21.3 % uncertain.
    assert!(made.readme().contains("from the median"), "{}", made.readme());
}
