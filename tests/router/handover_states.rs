//! A new process goes on with the states of the running router's filter, so that connections that only a state passes go on, and
//! with its tables.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown};
use std::thread;
use std::time::Duration;

use fullview_router::control::takeover::PROTOCOL;
use fullview_testnet::{Program, eventually, may_run};

use crate::connections::EchoedConnection;
use crate::control::{ask, connect};
use crate::datagrams::{passes, socket};
use crate::handover::{self, PROGRAMS, SOME, TAKEN};
use crate::kernel_filter::{FilterLab, is_blocked};
use crate::traffic::{Receiver, Sender, lost, twice};

/// The packets of a connection pass by its states only, except for the first one.
const PF: &str = "block all
pass in on eth1 inet proto tcp to port 4080 flags S/SA keep state
pass out on eth2 inet proto tcp to port 4080 flags S/SA keep state
";

/// The same rules behind others, one of which is for the same packets.
const OTHER_PF: &str = "block all
pass in on eth2 inet proto udp to port 4000 keep state
pass in on eth1 inet proto tcp to port 4080 flags S/SA keep state
pass out on eth2 inet proto tcp to port 4080 flags S/SA keep state
";

const IPFW: &str = "add check-state
add allow tcp from any to any 4080 in recv eth1 setup keep-state
add deny ip from any to any
";

/// Takes the place of the router, which hands over so many states.
fn take_over(lab: &FilterLab, mut before: Program, states: &str) -> Program {
    let mut next = lab.take_over();
    next.wait_for(TAKEN);
    assert!(eventually(|| !before.is_running()), "{}", before.output());
    let handed = before.output();
    assert!(handed.contains(&format!("{states} states of the filter were handed over")), "{handed}");
    let taken = next.output();
    assert!(taken.contains(&format!("{states} states of its filter go on")), "{taken}");
    next
}

fn a_connection_goes_on(language: &str, rules: &str, states: &str) {
    let lab = FilterLab::new(language, rules);
    let mut program = lab.start();
    let mut connection = EchoedConnection::open(&lab.lab.left, &lab.lab.right, "10.0.2.2:4080");
    connection.carries();
    for _ in 0..3 {
        program = take_over(&lab, program, states);
        connection.carries();
    }
    let shown = lab.show("states --protocol tcp");
    assert!(shown.contains("10.0.2.2:4080") && shown.contains("ESTABLISHED"), "{shown}");
    connection.close();
    let (code, output) = program.end("TERM");
    assert_eq!(code, Some(0), "{output}");
}

#[test]
fn a_connection_that_only_states_pass_goes_on() {
    if may_run(&[&PROGRAMS[..], &["nft"]].concat()) {
        a_connection_goes_on("pf", PF, "2");
        a_connection_goes_on("ipfw", IPFW, "1");
    }
}

#[test]
fn states_keep_their_rules_and_interfaces_where_these_have_other_numbers() {
    if !may_run(&[&PROGRAMS[..], &["nft"]].concat()) {
        return;
    }
    let lab = FilterLab::new("pf", &format!("set state-policy if-bound\n{PF}"));
    let mut program = lab.start();
    let mut connection = EchoedConnection::open(&lab.lab.left, &lab.lab.right, "10.0.2.2:4080");
    connection.carries();
    let rules_of = || {
        let shown = lab.show("states --protocol tcp");
        let rules = shown.split(", rule ").skip(1).map(|after| after.lines().next().unwrap().to_owned());
        (rules.collect::<Vec<_>>(), shown)
    };
    assert_eq!(rules_of().0, ["1", "2"]);
    lab.write(&format!("set state-policy if-bound\n{OTHER_PF}"));
    let mut next = lab.take_over_between("eth2,eth1");
    next.wait_for("2 states of its filter go on");
    assert!(eventually(|| !program.is_running()), "{}", program.output());
    connection.carries();
    let (rules, shown) = rules_of();
    assert_eq!(rules, ["2", "3"], "{shown}");
    assert!(shown.contains("in on eth1, only there") && shown.contains("out on eth2, only there"), "{shown}");
    connection.close();
    next.end("TERM");
}

/// A program in the kernel forwards most of them. While no process forwards, the fence drops them.
#[test]
fn answers_pass_again_when_the_new_process_forwards() {
    if !may_run(&[&PROGRAMS[..], &["nft"]].concat()) {
        return;
    }
    let lab = FilterLab::new("pf", crate::kernel_filter::PF);
    let mut program = lab.start();
    let (asking, answering) = (socket(&lab.lab.left, "10.0.1.2:9"), lab.right(4000));
    assert!(eventually(|| passes(&asking, &answering)), "{}", program.output());
    let (sender, receiver) =
        (Sender::start(answering, |_| Ipv4Addr::new(10, 0, 1, 2)), Receiver::start(asking));
    for _ in 0..3 {
        receiver.wait_for(SOME);
        program = take_over(&lab, program, "2");
        receiver.wait_for(SOME);
    }
    let (sent, arrived) = (sender.end(), receiver.end());
    println!("{} of {sent} packets, a thousand a second, were lost", lost(sent, &arrived).len());
    assert_eq!(twice(&arrived), [0; 0]);
    let shown = lab.show("states --protocol udp");
    let count = |line: &str| line.split(", ").find_map(|part| part.strip_suffix(" packets")?.parse().ok());
    let counts: Vec<usize> = shown.lines().filter_map(count).collect();
    // The sockets of both hosts may lose some, and the states count the question.
    let expected = arrived.len() + 1..=sent as usize + 5;
    assert!(counts.iter().all(|packets| expected.contains(packets)), "{expected:?}: {shown}");
    program.end("TERM");
}

/// Two states for each of so many flows are several times what the connection of the takeover can hold.
const FLOWS: u16 = 5000;

/// A router with many states.
fn with_many_states(lab: &FilterLab) -> Program {
    let program = lab.start();
    let from = socket(&lab.lab.left, "10.0.1.2:5000");
    // Packets that come before the neighbour is known have no states.
    let counted = |line: &str| line.starts_with(&format!("states {} of", 2 * FLOWS));
    assert!(eventually(|| {
        for port in 1..=FLOWS {
            from.send_to(b"x", ("10.0.2.2", port)).unwrap();
            if port % 100 == 0 {
                thread::sleep(Duration::from_millis(2));
            }
        }
        lab.show("filter").lines().any(counted)
    }));
    program
}

const MANY: &str = "pass in on eth1 inet proto udp keep state\npass out on eth2 inet proto udp keep state\n";

#[test]
fn many_states_go_on() {
    if may_run(&[&PROGRAMS[..], &["nft"]].concat()) {
        let lab = FilterLab::new("pf", &format!("block all\n{MANY}"));
        let program = with_many_states(&lab);
        let program = take_over(&lab, program, &(2 * FLOWS).to_string());
        take_over(&lab, program, &(2 * FLOWS).to_string()).end("TERM");
    }
}

#[test]
fn a_router_ends_although_the_new_process_takes_no_states() {
    if !may_run(&[&PROGRAMS[..], &["nft"]].concat()) {
        return;
    }
    let lab = FilterLab::new("pf", &format!("block all\n{MANY}"));
    let mut program = with_many_states(&lab);
    let mut client = connect(&handover::socket(&lab.control));
    let begun = ask(&mut client, &handover::begin(PROTOCOL));
    assert!(begun["error"].is_null(), "{begun}");
    ask(&mut client, "\"taken-over\"");
    client.get_mut().shutdown(Shutdown::Write).unwrap();
    assert!(eventually(|| !program.is_running()), "{}", program.output());
    let output = program.output();
    assert!(output.contains("what the filter remembers cannot be handed over"), "{output}");
}

#[test]
fn rules_with_an_error_leave_the_running_router_as_it_is() {
    if !may_run(&[&PROGRAMS[..], &["nft"]].concat()) {
        return;
    }
    let lab = FilterLab::new("pf", PF);
    let mut program = lab.start();
    let mut connection = EchoedConnection::open(&lab.lab.left, &lab.lab.right, "10.0.2.2:4080");
    lab.write("pass everything\n");
    let rules = lab.rules();
    let options = ["--filter-language", "pf", "--filter", rules.to_str().unwrap(), "--takeover"];
    let arguments =
        [&["forward", "--interfaces", "eth1,eth2"], &options[..], &lab.control.options()].concat();
    let mut next = lab.lab.router.start(env!("CARGO_BIN_EXE_fullview"), &arguments);
    assert!(eventually(|| !next.is_running()));
    assert!(next.output().contains("rules:1:6"), "{}", next.output());
    assert!(program.is_running() && lab.has_fence(), "{}", program.output());
    connection.carries();
    connection.close();
    program.end("TERM");
}

/// Who may send is not in the text of these rules.
const PF_WITH_TABLE: &str = "table <friends> persist
block all
pass in on eth1 inet proto udp from <friends> no state
pass out on eth2 inet proto udp from <friends> no state
";

const IPFW_WITH_TABLE: &str = "add allow udp from table(friends) to any
add deny ip from any to any
";

fn a_table_goes_on(language: &str, rules: &str) {
    let lab = FilterLab::new(language, rules);
    let mut program = lab.start();
    let (left, right) = (lab.left(5000), lab.right(4000));
    assert!(is_blocked(&left, &right));
    let added = lab.ask("filter table friends add 10.0.1.2 2001:db8::/32");
    assert!(added.contains("2 added"), "{added}");
    assert!(eventually(|| passes(&left, &right)), "{}", program.output());
    for _ in 0..2 {
        let mut next = lab.take_over();
        next.wait_for("1 tables of addresses go on with what they have");
        next.wait_for(TAKEN);
        assert!(eventually(|| !program.is_running()), "{}", program.output());
        assert!(eventually(|| passes(&left, &right)), "{}", next.output());
        program = next;
    }
    let shown = lab.ask("filter table friends show");
    assert!(shown.contains("10.0.1.2\n") && shown.contains("2001:db8::/32"), "{shown}");
    let deleted = lab.ask("filter table friends delete 10.0.1.2");
    assert!(deleted.contains("1 deleted; it has 1"), "{deleted}");
    assert!(is_blocked(&left, &right));
    program.end("TERM");
}

#[test]
fn tables_that_were_changed_go_on() {
    if may_run(&[&PROGRAMS[..], &["nft"]].concat()) {
        a_table_goes_on("pf", PF_WITH_TABLE);
        a_table_goes_on("ipfw", IPFW_WITH_TABLE);
    }
}

/// Without interfaces no worker runs.
#[test]
fn a_table_that_was_changed_while_no_worker_ran_goes_on() {
    if !may_run(&[&PROGRAMS[..], &["nft"]].concat()) {
        return;
    }
    let mut lab = FilterLab::new("pf", PF_WITH_TABLE);
    lab.wait_for_interfaces();
    let mut program = lab.start();
    ["eth1", "eth2"].iter().for_each(|link| _ = lab.lab.router.ip(&format!("link del {link}")));
    program.wait_for("interface eth2 is not there");
    let said = lab.ask("filter table friends add 10.0.1.2");
    assert!(said.contains("it takes it when it runs again"), "{said}");
    let mut next = lab.take_over();
    next.wait_for(TAKEN);
    let shown = lab.ask("filter table friends show");
    assert!(shown.contains("10.0.1.2\n"), "{shown}{}", next.output());
    next.end("TERM");
}

/// This shows that the connections of the other tests need their states.
#[test]
fn a_restart_ends_connections() {
    if !may_run(&[&PROGRAMS[..], &["nft"]].concat()) {
        return;
    }
    let lab = FilterLab::new("pf", PF);
    let program = lab.start();
    let mut connection = EchoedConnection::open(&lab.lab.left, &lab.lab.right, "10.0.2.2:4080");
    connection.carries();
    program.end("KILL");
    let next = lab.start();
    let client = &mut connection.client;
    client.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    client.write_all(b"more").unwrap();
    assert!(client.read(&mut [0; 4]).is_err(), "{}", lab.show("states"));
    next.end("TERM");
}
