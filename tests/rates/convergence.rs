//! Links and routes that fail.

use fullview_testnet::may_run;
use serde_json::Value;

use crate::device;
use crate::support::{measured, page, run, stderr};

/// Whether nothing was measured because other work took the cores.
pub fn was_disturbed(search: &Value) -> bool {
    let reasons = search["unanswered"].as_array().into_iter().flatten();
    let is_known = |reason: &Value| {
        let reason = reason.as_str().unwrap();
        assert!(["without loss", "disturbed"].iter().any(|known| reason.contains(known)), "{reason}");
    };
    reasons.inspect(|reason| is_known(reason)).count() > 0
}

/// The failures of a search, and whether other routes changed meanwhile.
fn kinds(search: &Value) -> Vec<(&str, bool)> {
    let all = search["convergence"].as_array().into_iter().flatten();
    all.map(|one| (one["failure"].as_str().unwrap(), !one["changes"].is_null())).collect()
}

fn assert_outages(name: &str, convergence: &Value) {
    let outages = convergence["outages"].as_array().unwrap();
    assert_eq!(outages.len(), 2, "{name}: {convergence}");
    let (failure, mut times) = (convergence["failure"].as_str().unwrap(), Vec::new());
    for outage in outages {
        let [share, time, span] = ["share", "outage_ms", "span_ms"].map(|key| outage[key].as_f64().unwrap());
        let is_shared = failure == "multipath-link";
        assert!(if is_shared { (0.1..0.9).contains(&share) } else { share == 1.0 }, "{name}: {outage}");
        assert_eq!(span > 0.0, outage["lost"].as_u64().unwrap() > 0, "{name}: {outage}");
        assert!(outage["recovered"].as_bool().unwrap(), "{name}, {failure}: {outage}");
        times.push(time);
    }
    let [median, worst] = ["median_ms", "worst_ms"].map(|key| convergence[key].as_f64().unwrap());
    assert_eq!(worst, times[0].max(times[1]), "{name}: {convergence}");
    assert!((median - times[0].midpoint(times[1])).abs() < 1e-9, "{name}: {convergence}");
}

#[test]
fn devices_leave_what_fails_also_while_routes_change() {
    if !may_run(&["ip", "ethtool", "chrt", "setpriv"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let names = ["kernel", "xdp"];
    let more = ["--routes", "2000", "--changes", "200", "--convergence=2"];
    let report = measured(folder.path(), &names, &[&["--devices", "kernel,xdp"][..], &more].concat());
    let failures = ["link", "multipath-link", "route"];
    let expected =
        [failures.map(|failure| (failure, false)), failures.map(|failure| (failure, true))].concat();
    for name in names {
        let search = &device(&report, name)["searches"][0];
        if was_disturbed(search) {
            eprintln!("{name}: other work took the cores: {}", search["unanswered"]);
            continue;
        }
        assert_eq!(kinds(search), expected, "{name}");
        search["convergence"].as_array().unwrap().iter().for_each(|one| assert_outages(name, one));
        let page = page(folder.path());
        assert!(page.contains("## Failures") && page.contains("(convergence-link.png)"), "{page}");
        let picture = std::fs::read_to_string(folder.path().join("out/convergence-link.svg")).unwrap();
        assert!(picture.contains(name), "{picture}");
    }
}

#[test]
fn a_cable_has_no_second_link() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(folder.path(), &["--convergence", "--devices", "link"]);
    assert_eq!(done.status.code(), Some(2), "{}", stderr(&done));
    assert!(stderr(&done).contains("link has no kernel"), "{}", stderr(&done));
}
