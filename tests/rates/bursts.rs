//! The longest bursts.

use fullview_testnet::may_run;
use serde_json::Value;

use crate::device;
use crate::support::{measured, page};

#[test]
fn bursts_have_lengths_and_a_device_that_forwards_nothing_has_none() {
    if !may_run(&["ip", "ethtool", "chrt"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let report = measured(folder.path(), &["kernel", "off"], &["--devices", "kernel,off", "--bursts"]);
    let burst = |name: &str| &device(&report, name)["searches"][0]["burst"];
    let (kernel, off) = (burst("kernel"), burst("off"));
    let packets = kernel["packets"].as_u64().unwrap();
    assert!(packets <= 100, "a trial has 100 packets: {kernel}");
    assert_eq!(kernel["lost"].is_null(), packets == 100, "{kernel}");
    assert_eq!((off["packets"].as_u64(), off["lost"].as_u64()), (Some(0), Some(1)), "{off}");
    assert_eq!(off["buffer"]["corrected_packets"].as_f64(), Some(0.0), "{off}");
    let page = page(folder.path());
    assert!(page.contains("## The longest bursts"), "{page}");
    let trials = std::fs::read_to_string(folder.path().join("out/trials.jsonl")).unwrap();
    let trials = trials.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let bursts = trials.filter(|trial| trial["device"] == "off" && trial["purpose"] == "burst");
    assert!(bursts.count() >= 8, "each of several lengths is tried twice");
}
