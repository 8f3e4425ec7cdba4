//! What an operator sees of the filter of a running router, and changes.

use fullview_testnet::eventually;
use serde_json::{Value, json};

use super::filter::{PF, Reloadable, filtered, hears, section, socket};
use super::*;
use crate::exposition;
use crate::operations::converse;

impl Standalone {
    fn json(&self, line: &str) -> Value {
        let (success, output) = self.ask(&format!("{line} --json"));
        assert!(success, "{line}: {output}");
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{line}: {error}: {output}"))
    }

    /// Sends questions from the left host until one is answered; its flow has a state in each pass then.
    fn question(&self, port: u16) {
        let [left, right] = [(&self.left, format!("10.0.1.2:{port}")), (&self.right, "10.0.2.2:4000".into())]
            .map(|(host, address)| socket(host, &address));
        let asked = || {
            left.send_to(b"question", "10.0.2.2:4000").unwrap();
            hears(&right, left.local_addr().unwrap())
        };
        assert!(eventually(asked), "{}", self.show("counters"));
        right.send_to(b"answer", left.local_addr().unwrap()).unwrap();
        assert!(hears(&left, "10.0.2.2:4000".parse().unwrap()), "{}", self.show("counters"));
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
    assert!(packets >= 2 && bytes >= 2 * 34 && states == 1, "{filter}");
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
    let answer = converse(&metrics, b"GET /metrics HTTP/1.1\r\nHost: router\r\n\r\n", true);
    let page = exposition::check(answer.split_once("\r\n\r\n").unwrap().1);
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

/// Flows from addresses in the table are dropped.
const TABLES: &str = "table <bad> persist
table <fixed> const { 192.0.2.0/24 }
table <given> { 192.0.2.1 }
pass
block in quick on left from <bad>
block in quick on third from { <fixed> <given> }
";

/// Asks, and returns the exit code with what is printed.
fn table(lab: &Standalone, line: &str) -> (i32, String) {
    let socket = lab.folder.path().join("control.sock");
    let output = std::process::Command::new(FULLVIEW)
        .args(["filter", "table", "--control", socket.to_str().unwrap()])
        .args(line.split(' '))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), text)
}

fn says(lab: &Standalone, line: &str, code: i32, words: &str) {
    let (found, said) = table(lab, line);
    assert!(found == code && said.contains(words), "{line}: {found}: {said}");
}

#[test]
fn a_table_changes_while_packets_flow() {
    if !may_run_standalone() {
        return;
    }
    let router = Reloadable::start(TABLES);
    let lab = &router.lab;
    let right = socket(&lab.right, "10.0.2.2:4000");
    let passes = |port: u16| {
        let left = socket(&lab.left, &format!("10.0.1.2:{port}"));
        left.send_to(b"question", "10.0.2.2:4000").unwrap();
        hears(&right, left.local_addr().unwrap())
    };
    assert!(eventually(|| passes(5000)), "{}", lab.show("counters"));
    says(lab, "bad test 10.0.1.2", 1, "10.0.1.2 is not in table <bad>\n");
    says(lab, "bad add 10.0.1.0/24 10.0.1.9 10.0.1.2/24", 0, "table <bad>: 2 of 2 added; it has 2\n");
    assert!(!passes(5001));
    assert!(passes(5000), "its state is kept");
    says(lab, "<bad> test 10.0.1.2", 0, "10.0.1.2 is in table <bad>, by 10.0.1.0/24\n");
    says(lab, "bad add !10.0.1.2 --json", 0, "\"added\": 1");
    assert!(passes(5002));
    says(lab, "bad test 10.0.1.2 --json", 1, "\"contained\": false");
    says(lab, "bad add 10.0.1.2", 1, "has !10.0.1.2 already");
    says(lab, "bad show", 0, "10.0.1.0/24\n!10.0.1.2\n10.0.1.9\n");
    says(lab, "bad delete !10.0.1.2 10.0.1.3", 0, "1 of 2 deleted; it has 2\n");
    assert!(!passes(5003));
    let file = lab.folder.path().join("bad.txt");
    let many: String = (0..5000).map(|n| format!("10.9.{}.{} ", n / 250, n % 250)).collect();
    std::fs::write(&file, format!("{many}\n! 10.1.0.0/16 # not these\n")).unwrap();
    says(lab, &format!("bad replace --file {}", file.display()), 0, "5001 added, 2 deleted; it has 5001\n");
    assert!(passes(5004));
    let shown: Value = serde_json::from_str(&table(lab, "bad show --json").1).unwrap();
    assert_eq!(shown["entries"].as_array().unwrap().len(), 5001);
    assert_eq!(shown["table"], json!({ "name": "bad", "addresses": 5001, "constant": false }));
    router.lab.end();
}

#[test]
fn tables_refuse_what_they_cannot_take() {
    if !may_run_standalone() {
        return;
    }
    let router = Reloadable::start(TABLES);
    let lab = &router.lab;
    let file = lab.folder.path().join("wrong.txt");
    std::fs::write(&file, "10.0.0.1\n10.0.0.2 host\n").unwrap();
    let file = file.to_str().unwrap();
    says(lab, "fixed add 10.0.1.2", 1, "table <fixed> is const");
    says(lab, "fixed test 192.0.2.200", 0, "is in table <fixed>");
    says(lab, "nowhere show", 1, "there is no table <nowhere>; the rules have <bad>, <fixed>, <given>");
    says(lab, "nowhere test 10.0.0.1", 2, "there is no table <nowhere>");
    says(lab, "bad add 10.0.0.1=7", 1, "tables of pf have no values");
    says(lab, &format!("bad add --file {file}"), 2, &format!("{file}:2: 'host' is no entry of a table"));
    says(lab, "bad show --json", 0, "\"entries\": []");
    router.lab.end();
}

#[test]
fn a_reload_keeps_the_tables_that_the_rules_leave_open() {
    if !may_run_standalone() {
        return;
    }
    let router = Reloadable::start(TABLES);
    let lab = &router.lab;
    for name in ["bad", "given"] {
        says(lab, &format!("{name} add 10.7.0.0/16"), 0, "1 of 1 added");
    }
    let other = "block in quick on third from <unnamed>\n".to_owned() + TABLES;
    let (success, output) = router.reload(&other);
    assert!(success, "{output}");
    says(lab, "bad test 10.7.0.1", 0, "by 10.7.0.0/16");
    says(lab, "given test 10.7.0.1", 1, "is not in table <given>");
    let (success, output) = router.reload(&TABLES.replace("<bad> persist", "<bad> persist { }"));
    assert!(success, "{output}");
    says(lab, "bad test 10.7.0.1", 1, "is not in table <bad>");
    router.lab.end();
}

#[test]
fn tables_of_ipfw_have_values() {
    if !may_run_standalone() {
        return;
    }
    let rules = "table ports create\nadd allow udp from any to \"table(ports,7)\" 4000\nadd deny ip from any to any\n";
    let lab = filtered("ipfw", rules);
    says(&lab, "ports add 10.0.2.0/24=6 10.0.2.2=7", 0, "2 of 2 added");
    let [left, right] = [(&lab.left, "10.0.1.2:5000"), (&lab.right, "10.0.2.2:4000")]
        .map(|(host, address)| socket(host, address));
    let passes = || {
        left.send_to(b"question", "10.0.2.2:4000").unwrap();
        hears(&right, left.local_addr().unwrap())
    };
    assert!(eventually(passes), "{}", lab.show("filter"));
    says(&lab, "ports delete 10.0.2.2", 0, "1 of 1 deleted; it has 1");
    assert!(!passes());
    says(&lab, "ports add !10.0.2.2", 1, "tables of ipfw have no exceptions");
    says(&lab, "ports show", 0, "10.0.2.0/24=6\n");
    lab.end();
}
