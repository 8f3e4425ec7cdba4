//! Metrics, as Prometheus scrapes them.

use fullview_testnet::eventually;
#[cfg(feature = "bpf")]
use fullview_testnet::may_run;
#[cfg(feature = "bpf")]
use serde_json::Value;

use super::{Operated, converse, may_operate};
use crate::exposition;

#[test]
fn metrics_count_what_was_forwarded_and_dropped() {
    if !may_operate() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let metrics = folder.path().join("metrics.sock");
    let operated = Operated::start(&["--engine", "threads", "--metrics", metrics.to_str().unwrap()]);
    operated.forwards_itself();
    operated.lab.router.ip("route add blackhole 10.8.0.0/16");
    let answer = || converse(&metrics, b"GET /metrics HTTP/1.1\r\nHost: router\r\n\r\n", true);
    let dropped = eventually(|| {
        operated.send("10.8.0.1:9", 3);
        let answer = answer();
        let page = exposition::check(answer.split_once("\r\n\r\n").unwrap().1);
        page.value("fullview_dropped_packets_total", &[("reason", "blackhole")]) >= 3.0
    });
    let answer = answer();
    assert!(dropped, "{answer}");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text"), "{answer}");
    let page = exposition::check(answer.split_once("\r\n\r\n").unwrap().1);
    let value = |name: &str, labels: &[(&str, &str)]| page.value(name, labels);
    let by_interface = [("interface", "eth1"), ("reason", "blackhole")];
    assert!(value("fullview_interface_dropped_packets_total", &by_interface) >= 3.0);
    assert!(operated.ask("show interfaces").contains("eth1 dropped: blackhole "));
    assert!(value("fullview_interface_transmit_packets_total", &[("interface", "eth2")]) >= 1.0);
    assert!(value("fullview_interface_receive_bytes_total", &[("interface", "eth1")]) >= 50.0);
    assert_eq!(value("fullview_interface_receive_overruns_total", &[("interface", "eth1")]), 0.0);
    assert_eq!(value("fullview_interface_up", &[("interface", "eth1")]), 1.0);
    assert!(value("fullview_fib_routes", &[("family", "inet"), ("table", "254")]) >= 5.0);
    assert!(
        value("fullview_neighbors", &[("state", "usable")])
            + value("fullview_neighbors", &[("state", "stale")])
            >= 1.0
    );
    assert_eq!(value("fullview_netlink_resyncs_total", &[]), 0.0);
    assert!(value("fullview_worker_seconds_total", &[("worker", "0")]) > 0.0);
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("hello\r\n\r\n", "400"),
    ] {
        assert!(converse(&metrics, request.as_bytes(), true).contains(status), "{request}");
    }
    // The answer does not wait for a body that the client announces and does not send.
    for (request, status) in [
        ("GET /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\n", "200 OK"),
        ("POST /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "405"),
        ("POST /metrics HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", "405"),
    ] {
        assert!(converse(&metrics, request.as_bytes(), false).contains(status), "{request}");
    }
    let head = converse(&metrics, b"HEAD /metrics HTTP/1.0\r\n\r\n", true);
    assert!(head.ends_with("\r\n\r\n") && head.contains("200 OK"), "{head}");
}

#[cfg(feature = "bpf")]
#[test]
fn counters_of_the_xdp_engine_are_shown_and_scraped() {
    if !may_run(&["ip", "ping", "ethtool", "setpriv"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let metrics = folder.path().join("metrics.sock");
    let operated = Operated::start(&["--engine", "xdp-generic", "--metrics", metrics.to_str().unwrap()]);
    operated.forwards();
    let forwarded = |counters: &Value| counters["program"]["forwarded"].as_u64().unwrap();
    let before = forwarded(&operated.json("counters"));
    operated.lab.router.ip("route add blackhole 10.8.0.0/16");
    let counted = eventually(|| {
        operated.send("10.0.2.2:9", 10);
        operated.send("10.8.0.1:9", 3);
        let counters = operated.json("counters");
        forwarded(&counters) >= before + 10 && counters["program"]["blackhole"].as_u64().unwrap() >= 3
    });
    let shown = operated.ask("show counters");
    assert!(
        counted && shown.contains("program: forwarded ") && shown.contains("program: blackhole "),
        "{shown}"
    );
    let counters = operated.json("counters");
    assert!(counters["workers"][1]["name"].as_str().unwrap().starts_with("processor "), "{counters}");
    let interfaces = operated.json("interfaces");
    let [left, right] = [0, 1].map(|number| &interfaces[number]);
    let packets = |side: &Value| side["packets"].as_u64().unwrap();
    assert!(packets(&left["received"]) >= 13 && packets(&right["sent"]) >= 10, "{interfaces}");
    assert!(left["received"]["bytes"].as_u64().unwrap() >= 13 * 42, "{interfaces}");
    assert!(left["program"]["blackhole"].as_u64().unwrap() >= 3, "{interfaces}");
    assert_eq!(right["program"]["blackhole"], 0, "{interfaces}");
    let answer = converse(&metrics, b"GET /metrics HTTP/1.1\r\nHost: router\r\n\r\n", true);
    let page = exposition::check(answer.split_once("\r\n\r\n").unwrap().1);
    let value = |outcome| page.value("fullview_program_packets_total", &[("outcome", outcome)]);
    assert!(value("forwarded") >= 10.0 && value("blackhole") >= 3.0, "{answer}");
    let of =
        |name: &str, labels: &[(&str, &str)]| page.value(&format!("fullview_interface_{name}_total"), labels);
    assert!(of("transmit_packets", &[("interface", "eth2")]) >= 10.0, "{answer}");
    assert!(of("program_packets", &[("interface", "eth1"), ("reason", "blackhole")]) >= 3.0, "{answer}");
}
