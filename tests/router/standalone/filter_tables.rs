//! Tables of a running filter, as an operator changes them.

use fullview_testnet::eventually;
use serde_json::{Value, json};

use super::filter::{Reloadable, filtered};
use super::*;
use crate::datagrams::{passes, socket};

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
        passes(&left, &right)
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
    says(lab, &format!("bad add --file {file}"), 2, &format!("{file}:2: 'host' is no address and no prefix"));
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
fn tables_of_ipfw_have_numbers() {
    if !may_run_standalone() {
        return;
    }
    let rules = "table open create type number\nadd allow udp from any to any lookup dst-port open\n\
                 add deny ip from any to any\n";
    let lab = filtered("ipfw", rules);
    let [left, right] = [(&lab.left, "10.0.1.2:5000"), (&lab.right, "10.0.2.2:4000")]
        .map(|(host, address)| socket(host, address));
    let passes = || passes(&left, &right);
    assert!(!passes());
    says(&lab, "open add 53 4000=7", 0, "2 of 2 added");
    assert!(eventually(passes), "{}", lab.show("filter"));
    says(&lab, "open test 4000", 0, "4000 is in table <open>, by 4000=7");
    says(&lab, "open test 10.0.2.2", 2, "the table has numbers, not addresses");
    says(&lab, "open test 4001", 1, "is not in table <open>");
    says(&lab, "open add 10.0.2.2", 1, "the table has numbers, not addresses");
    says(&lab, "open delete 4000", 0, "1 of 1 deleted; it has 1");
    assert!(!passes());
    says(&lab, "open show", 0, "53\n");
    lab.end();
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
    let passes = || passes(&left, &right);
    assert!(eventually(passes), "{}", lab.show("filter"));
    says(&lab, "ports delete 10.0.2.2", 0, "1 of 1 deleted; it has 1");
    assert!(!passes());
    says(&lab, "ports add !10.0.2.2", 1, "tables of ipfw have no exceptions");
    says(&lab, "ports add 80", 1, "the table has addresses, not numbers");
    says(&lab, "ports show", 0, "10.0.2.0/24=6\n");
    lab.end();
}
