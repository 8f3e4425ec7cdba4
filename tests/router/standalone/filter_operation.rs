//! The rules of a running filter, as an operator sees them.

use fullview_testnet::eventually;
use serde_json::{Value, json};

use super::filter::{PF, Reloadable, filtered, section};
use super::*;
use crate::datagrams::{passes, socket};
use crate::exposition;
use crate::operations::converse;

impl Standalone {
    fn json(&self, line: &str) -> Value {
        let (success, output) = self.ask(&format!("{line} --json"));
        assert!(success, "{line}: {output}");
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{line}: {error}: {output}"))
    }

    /// Sends questions from the left host until one is answered; its flow has a state in each pass then.
    pub fn question(&self, port: u16) {
        let [left, right] = [(&self.left, format!("10.0.1.2:{port}")), (&self.right, "10.0.2.2:4000".into())]
            .map(|(host, address)| socket(host, &address));
        assert!(eventually(|| passes(&left, &right)), "{}", self.show("counters"));
        assert!(passes(&right, &left), "{}", self.show("counters"));
    }
}

/// The counts of the rule whose text begins like this: packets, bytes, states.
fn counts(filter: &Value, text: &str) -> [u64; 3] {
    let rules = filter["rules"].as_array().unwrap();
    let rule = rules.iter().find(|rule| rule["text"].as_str().unwrap().starts_with(text));
    let rule = rule.unwrap_or_else(|| panic!("no rule {text}: {filter}"));
    ["packets", "bytes", "states"].map(|key| rule[key].as_u64().unwrap())
}

#[test]
fn rules_are_shown_with_their_counts() {
    if !may_run_standalone() {
        return;
    }
    let labelled = PF.replace("keep state\npass out", "keep state label \"questions\"\npass out");
    let lab = filtered("pf", &format!("table <known> const {{ 192.0.2.0/24 10.9.9.9 }}\n{labelled}"));
    lab.question(5000);
    let filter = lab.json("show filter");
    let [packets, bytes, states] = counts(&filter, "pass in on left");
    assert!(packets >= 2 && bytes >= 2 * 32 && states == 1, "{filter}");
    assert_eq!(counts(&filter, "pass out")[2], 1, "{filter}");
    assert_eq!((&filter["language"], &filter["states"]["used"]), (&"pf".into(), &2.into()), "{filter}");
    assert_eq!(filter["tables"][0], json!({ "name": "known", "addresses": 2, "constant": true }));
    let other = socket(&lab.left, "10.0.1.2:5001");
    let dropped = |filter: &Value| filter["drops"]["filter_rule"].as_u64().unwrap_or(0);
    assert!(eventually(|| {
        other.send_to(b"question", "10.0.2.2:4001").unwrap();
        let filter = lab.json("show filter");
        dropped(&filter) > 0 && counts(&filter, "block drop all")[0] > 0
    }));
    let shown = lab.show("filter");
    for words in
        ["pf rules of ", "states 2 of 100000", "dropped: filter_rule ", "label \"questions\"", "<known>"]
    {
        assert!(shown.contains(words), "{words} is missing in {shown}");
    }
    lab.end();
}

#[test]
fn many_rules_are_shown_in_pages_and_the_first_have_metrics() {
    if !may_run_standalone() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let rules: String = (0..2500).map(|port| format!("pass in proto udp to port {port}\n")).collect();
    let file = folder.path().join("rules");
    std::fs::write(&file, format!("block log all\n{rules}pass label \"rest\"\n")).unwrap();
    let metrics = folder.path().join("metrics.sock");
    let listen = format!("[metrics]\nlisten = \"{}\"\n", metrics.display());
    let lab = Standalone::start(&(section("pf").replace("FOLDER/rules", file.to_str().unwrap()) + &listen));
    lab.question(5000);
    let filter = lab.json("show filter");
    let numbers: Vec<u64> =
        filter["rules"].as_array().unwrap().iter().map(|rule| rule["number"].as_u64().unwrap()).collect();
    // The first one is about options, and has no number of its own.
    assert_eq!(numbers[1..], (0..=2501).collect::<Vec<_>>());
    assert!(
        counts(&filter, "pass all flags S/SA keep state label \"rest\"")[0] >= 4,
        "{}",
        filter["rules"][2502]
    );
    let control = lab.folder.path().join("control.sock");
    let page = converse(&control, b"{\"filter\":{\"from\":4294966272}}\n", true);
    assert!(page.contains("\"rules\":[]"), "clients may ask from any number on: {page}");
    let answer = converse(&metrics, b"GET /metrics HTTP/1.1\r\nHost: router\r\n\r\n", true);
    let page = exposition::check(answer.split_once("\r\n\r\n").unwrap().1);
    assert_eq!(page.value("fullview_filter_answers", &[]), 1.0);
    assert_eq!(page.value("fullview_filter_rules", &[]), 2503.0);
    assert_eq!(page.value("fullview_filter_states", &[]), 2.0);
    assert!(page.value("fullview_filter_packets_total", &[]) >= 4.0);
    let labels = [("index", "1"), ("rule", "0"), ("text", "block drop log all")];
    assert!(page.value("fullview_filter_rule_packets_total", &labels) >= 0.0);
    assert_eq!(answer.matches("fullview_filter_rule_states{").count(), 1000);
    lab.end();
}

#[test]
fn a_router_without_a_filter_says_so() {
    if !may_run_standalone() {
        return;
    }
    let lab = Standalone::start("");
    let (success, output) = lab.ask("show filter");
    assert!(!success && output.contains("section [filter]"), "{output}");
}

#[test]
fn names_of_interfaces_that_the_router_lacks_are_a_warning() {
    if !may_run_standalone() {
        return;
    }
    let router = Reloadable::start("pass\npass in on lefft\nset skip on lo0\n");
    let path = router.rules.to_str().unwrap().to_owned();
    let warned = |line: u32, name: &str| {
        let text = format!(
            "filter: {path}:{line}:1: no interface is named {name}; there are left, right, third, fourth"
        );
        let events = router.lab.show("events");
        assert!(events.lines().any(|line| line.contains("warning") && line.ends_with(&text)), "{events}");
    };
    warned(2, "lefft");
    let (success, output) = router.reload("pass\npass\npass out on tird\n");
    assert!(success, "{output}");
    warned(3, "tird");
    assert!(!router.lab.show("events").contains("named lo0"));
    router.lab.end();
}
