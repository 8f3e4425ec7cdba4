//! The states of a running filter, as an operator lists them.

use std::time::Duration;

use fullview_testnet::eventually;
use serde_json::{Value, json};

use super::filter::{Reloadable, filtered};
use super::*;
use crate::datagrams::{passes, socket};
use crate::traffic::{Receiver, Sender, lost};

/// Both directions of a flow of each family, as `show states` lists them.
#[test]
fn states_are_listed_and_chosen() {
    if !may_run_standalone() {
        return;
    }
    let lab = filtered("pf", "pass in on left\npass out on right keep state (if-bound)\npass on third\n");
    lab.question(5000);
    let ping =
        |options: &str| lab.left.try_command(&format!("ping -n -c 2 -W 60 {options}")).status.success();
    assert!(ping("10.0.2.2") && ping("2001:db8:2::2"));
    let list = |conditions: &str| -> Vec<Value> {
        let (success, output) = lab.ask(&format!("show states {conditions} --json"));
        assert!(success, "{conditions}: {output}");
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let udp = list("10.0.1.2 --protocol udp");
    assert_eq!(udp.len(), 2, "{udp:?}");
    let [inward, outward] =
        ["in", "out"].map(|way| udp.iter().find(|state| state["direction"] == way).unwrap());
    assert_eq!((&inward["interface"], &inward["bound"]), (&json!("left"), &json!(false)));
    assert_eq!((&outward["interface"], &outward["bound"]), (&json!("right"), &json!(true)));
    assert_eq!(inward["source"], json!({ "address": "10.0.1.2", "port": 5000 }));
    assert_eq!(inward["destination"], json!({ "address": "10.0.2.2", "port": 4000 }));
    assert_eq!(inward["phases"], json!(["MULTIPLE", "SINGLE"]));
    assert!(inward["packets"].as_u64().unwrap() >= 2 && inward["bytes"].as_u64().unwrap() >= 60, "{inward}");
    assert_eq!((&inward["rule"]["number"], &outward["rule"]["number"]), (&json!(0), &json!(1)));
    let expires = inward["expires-seconds"].as_f64().unwrap();
    assert!(expires > 0.0 && expires <= 60.0, "{inward}");
    assert_eq!(list("2001:db8::/32 --protocol icmp6").len(), 2);
    assert_eq!(list("--rule 0").len(), 3);
    assert_eq!((list("--rule 2").len(), list("10.0.9.9").len(), list("--limit 1").len()), (0, 0, 1));
    let shown = lab.show("states --protocol udp");
    for words in
        ["udp 10.0.1.2:5000 -> 10.0.2.2:4000 MULTIPLE:SINGLE, in on left\n", ", only there\n  age 00:0"]
    {
        assert!(shown.contains(words), "{words:?} is missing in {shown}");
    }
    let (success, output) = lab.ask("show states somewhere");
    assert!(!success && output.contains("'somewhere' is no address"), "{output}");
    lab.end();
}

#[test]
fn flows_whose_states_are_removed_meet_the_rules_again() {
    if !may_run_standalone() {
        return;
    }
    let router = Reloadable::start("pass\n");
    let lab = &router.lab;
    let right = socket(&lab.right, "10.0.2.2:4000");
    let [flow, other] = [5000, 5001].map(|port| socket(&lab.left, &format!("10.0.1.2:{port}")));
    let passes = |flow: &UdpSocket| passes(flow, &right);
    assert!(eventually(|| passes(&flow)) && passes(&other));
    assert!(router.reload("block all\n").0);
    assert!(passes(&flow) && passes(&other), "states stay");
    let (success, output) = lab.ask("filter kill 10.0.1.0/24 --protocol 17");
    assert_eq!((success, output.as_str()), (true, "4 states removed\n"));
    assert!(!passes(&flow) && !passes(&other));
    let (success, output) = lab.ask("filter kill");
    assert!(!success && output.contains("name the states by an address"), "{output}");
    router.lab.end();
}

/// More states than a page and a piece have, with one flow that goes on all the time.
#[test]
fn many_states_are_listed_while_packets_flow_without_loss() {
    if !may_run_standalone() {
        return;
    }
    const FLOWS: u16 = 3000;
    let lab = filtered("pf", "pass\n");
    let right = lab.right.udp("10.0.2.2:9");
    lab.answers("10.0.2.2");
    lab.answers("10.0.3.2");
    let flows: Vec<UdpSocket> =
        (0..FLOWS).map(|port| lab.left.udp(&format!("10.0.1.2:{}", 20_000 + port))).collect();
    right.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let mut seen = BTreeMap::new();
    // The queue of a socket holds some 250 packets.
    for some in flows.chunks(50) {
        some.iter().for_each(|flow| _ = flow.send_to(b"first", "10.0.2.2:9").unwrap());
        let all = seen.len() + some.len();
        let have_arrived = || {
            count_flows(&right, &mut seen);
            seen.len() == all
        };
        assert!(eventually(have_arrived), "{} of {all}: {}", seen.len(), lab.show("filter"));
    }
    let receiver = Receiver::start(lab.third.udp("10.0.3.2:9"));
    let sender = Sender::start(lab.left.udp("10.0.1.2:0"), |_| [10, 0, 3, 2].into());
    for _ in 0..5 {
        let (success, output) = lab.ask("show states 10.0.2.2 --protocol udp --json");
        let mut listed: Vec<(u64, String)> = output.lines().map(end_of).collect();
        assert!(success && listed.len() == 2 * usize::from(FLOWS), "{} states", listed.len());
        listed.sort();
        listed.dedup();
        assert_eq!(listed.len(), 2 * usize::from(FLOWS), "no state is listed twice");
    }
    let kill = |line: &str| lab.ask(&format!("filter kill {line}"));
    assert_eq!(kill("10.0.2.2 --protocol udp"), (true, format!("{} states removed\n", 2 * FLOWS)));
    assert_eq!(kill("10.0.2.2 --protocol udp --json"), (true, "{\n  \"removed\": 0\n}\n".to_owned()));
    let sent = sender.end();
    let arrived = Receiver::end_with(sent, vec![receiver]).concat();
    assert!(sent > 20 && lost(sent, &arrived).is_empty(), "{sent} sent, lost {:?}", lost(sent, &arrived));
    lab.end();
}

fn end_of(line: &str) -> (u64, String) {
    let state: Value = serde_json::from_str(line).unwrap();
    (state["source"]["port"].as_u64().unwrap(), state["direction"].as_str().unwrap().to_owned())
}
