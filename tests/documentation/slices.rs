//! The table of the lengths that slices may have is that of the program.

use fullview_bench::settings::Settings;
use fullview_bench::subject::slice_limits;
use fullview_lab::{Experiment, SliceLimits};

const EXPERIMENTS: &str = include_str!("../../docs/experiments.md");
const HEAD: &str = "| subject | `window.slice_ms` |\n| --- | --- |\n";

const ROUTER_PEER: &str = "load.peer = { program = \"p\", inet = \"a:1\" }";
const LOOKUP_PEER: &str = "kind = \"lookup\", lookup.peer = { program = \"p\", inet = \"a:1\" }";

/// The rows of the table, and subjects that each is about.
const ROWS: [(&str, &[&str]); 6] = [
    ("kind `forward` on one core", &["load.shape = \"one-core\""]),
    ("kind `forward` on two cores", &["load.shape = \"two-cores\""]),
    ("kinds `lookup` and `updates`", &["kind = \"lookup\"", "kind = \"updates\""]),
    ("routers or lookups by a peer", &[ROUTER_PEER, LOOKUP_PEER]),
    ("kind `kernel`", &["kind = \"kernel\""]),
    ("kinds `veth` and `testbed`", &["kind = \"veth\"", "kind = \"testbed\""]),
];

#[test]
fn the_lengths_of_slices_are_documented() {
    let table = EXPERIMENTS.split_once(HEAD).unwrap().1.split_once("\n\n").unwrap().0;
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows.len(), ROWS.len(), "{table}");
    for (row, (label, subjects)) in rows.iter().zip(ROWS) {
        for subject in subjects {
            assert_eq!(*row, format!("| {label} | {} |", lengths(subject)), "{subject}");
        }
    }
}

/// The lengths that a subject can run, in milliseconds.
fn lengths(subject: &str) -> String {
    let text = format!(
        "title = \"Slices\"\nfamilies = [\"inet\"]\nseed = 1\nwindow = {{ warmup_s = 0.1, measure_s = 0.1 }}\n\
         subject = {{ {subject} }}\nvariants = [{{ name = \"one\", label = \"one\" }}]\n"
    );
    let experiment = Experiment::<Settings>::parse("slices.toml", &text).unwrap();
    let SliceLimits { shortest, longest } = slice_limits(&experiment);
    let [shortest, longest] = [shortest, longest].map(|length| length.as_nanos() as f64 / 1e6);
    format!("{shortest} to {longest}").replace("4000", "4,000")
}
