//! Routes in the devices' kernels, which change.

use fullview_testnet::may_run;

use crate::device;
use crate::support::{measured, page, resume, run, stderr};

#[test]
fn devices_forward_by_routes_that_change() {
    if !may_run(&["ip", "ethtool", "chrt", "setpriv"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let names = ["kernel", "threads", "xdp"];
    let arguments = ["--devices", "kernel,threads,xdp", "--routes", "3000", "--changes", "500"];
    let report = measured(folder.path(), &names, &arguments);
    for name in names {
        let search = &device(&report, name)["searches"][0];
        assert!(search["mrr"].as_f64().unwrap() > 0.0, "{name}: {search}");
        let (routes, changes) = (&search["routes"], &search["changes"]);
        assert_eq!(routes["routes"].as_u64(), Some(3000));
        let [load, forwards] = ["load_seconds", "forwards_seconds"].map(|key| routes[key].as_f64().unwrap());
        assert!(0.0 < load && load <= forwards, "{name}: {routes}");
        assert!(changes["made"].as_u64().unwrap() > 0, "{name}: {changes}");
        let made = changes["made_per_second"].as_f64().unwrap();
        assert!(made <= changes["wanted_per_second"].as_f64().unwrap(), "{name}: {changes}");
        assert_eq!(routes["program"].is_null(), name == "kernel", "{name}: {routes}");
    }
    let program = &device(&report, "xdp")["searches"][0]["routes"]["program"];
    assert!(program[0]["resident"].as_u64() > Some(0) && program[0]["maps"].as_u64() > Some(0), "{program}");
    assert!(page(folder.path()).contains("with 3000 synthetic routes"));
}

#[test]
fn routes_change_as_in_a_trace() {
    if !may_run(&["ip", "ethtool", "chrt", "setpriv"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("updates.txt");
    let announced = "1418774413 a 198.18.0.0/15 192.0.2.1\n1418774413 a 198.18.7.0/24 192.0.2.2\n";
    std::fs::write(&trace, format!("{announced}1418774414 w 198.18.7.0/24\n")).unwrap();
    let arguments = ["--devices", "kernel", "--routes", "3000", "--changes", "500", "--trace"];
    let arguments = [&arguments[..], &[trace.to_str().unwrap()]].concat();
    let report = measured(folder.path(), &["kernel"], &arguments);
    let search = &device(&report, "kernel")["searches"][0];
    assert!(search["mrr"].as_f64().unwrap() > 0.0, "{search}");
    assert!(search["changes"]["made"].as_u64().unwrap() > 0, "{search}");
    assert_eq!(search["changes"]["traced"], true);
    assert!(page(folder.path()).contains("every second, as in a trace"));
    std::fs::write(&trace, announced).unwrap();
    let other = resume(folder.path(), &arguments);
    assert!(other.status.code() == Some(2) && stderr(&other).contains("trace_sha256"), "{}", stderr(&other));
}

#[test]
fn routes_that_no_device_can_have_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], reason: &str| {
        let done = run(folder.path(), arguments);
        assert_eq!(done.status.code(), Some(2), "{}", stderr(&done));
        assert!(stderr(&done).contains(reason), "{}", stderr(&done));
    };
    refused(&["--devices", "link,kernel", "--routes", "1000"], "link has no kernel with routes");
    refused(&["--changes", "10"], "--routes");
    refused(&["--routes", "10"], "100..=2000000");
    let trace = folder.path().join("updates.txt");
    let path = trace.to_str().unwrap();
    let traced = ["--devices", "kernel", "--routes", "1000", "--changes", "10", "--trace", path];
    refused(&traced, "updates.txt");
    std::fs::write(&trace, "1 w 198.18.0.0/15\n1 b 198.18.0.0/15\n").unwrap();
    refused(&traced, "updates.txt, line 2");
    std::fs::write(&trace, "1 w 198.18.0.0/15\n").unwrap();
    refused(&traced, "the trace changes nothing");
    refused(&["--routes", "1000", "--trace", path], "--changes");
    refused(&["--routes", "1000", "--changes", "0", "--trace", path], "a rate above 0");
}
