//! Results of netbenches, read and written.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use tempfile::TempDir;

use crate::support::{Ran, SMALL, fullview, run_in};

#[test]
fn a_campaign_that_is_exported_and_imported_has_the_same_medians() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("small.toml"), SMALL).unwrap();
    for command in
        [&["bench", "small.toml", "--out", "campaign"][..], &["export", "campaign", "--to", "columns"]]
    {
        let ran = run_in(dir.path(), command);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    }
    let ran = run_in(dir.path(), &["import", "columns", "--json"]);
    let imported: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let data = fs::read_to_string(dir.path().join("columns/gnuplot.data")).unwrap();
    let series = imported["series"].as_array().unwrap();
    assert_eq!(series.len(), 4);
    for series in series {
        let mut values: Vec<f64> =
            series["values"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        values.sort_by(f64::total_cmp);
        let line = format!("{} {} ", series["name"].as_str().unwrap(), values[1]);
        assert!(data.contains(&line), "{line:?} is missing in: {data}");
    }
    let ran = run_in(dir.path(), &["import", "columns"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("report: results/columns/report.md"), "{}", ran.out);
    let again = run_in(dir.path(), &["import", "columns"]);
    assert!(again.code == 2 && again.err.contains("--force"), "{}: {}", again.code, again.err);
    let folder = dir.path().join(OsStr::from_bytes(b"columns-\xff"));
    fs::rename(dir.path().join("columns"), &folder).unwrap();
    let shown = Ran::of(&fullview().args(["import", "--json"]).arg(&folder).output().unwrap());
    assert!(shown.code == 0 && shown.out.contains("columns-"), "{}", shown.err);
    let none = run_in(dir.path(), &["import", "campaign"]);
    assert!(none.code == 2 && none.err.contains("no series of runs"), "{}: {}", none.code, none.err);
}
