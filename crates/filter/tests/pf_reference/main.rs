//! Rules of pf in their compiled form decide as a slow interpreter of the rules does, for random rules and packets.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests stand outside `#[test]` functions

mod generate;
mod interpreter;
mod lowering;
mod states;

use std::io;

use fullview_filter::interfaces::{FilterInterface, Interfaces};
use fullview_filter::packet::Packet;
use fullview_filter::pf::config::PfConfig;
use fullview_filter::pf::error::PfError;
use fullview_filter::pf::files::RulesetFiles;
use fullview_filter::pf::host::HostFacts;
use fullview_filter::pf::load::load;
use fullview_filter::pf::lower::{LoweredPf, lower};
use fullview_filter::rule::RuleAction;
use fullview_filter::ruleset::{RuleSet, TriedRule};
use fullview_filter::state::{FilterWorker, WorkerLimits};
use fullview_filter::verdict::{DecidedBy, Decision, Verdict};
use proptest::prelude::*;

use interpreter::{Answer, Interpreter};

/// Files by name; the rule set is `rules`.
pub struct Files<'a>(pub &'a [(&'a str, &'a str)]);

impl RulesetFiles for Files<'_> {
    fn read(&self, path: &str) -> io::Result<String> {
        let file = self.0.iter().find(|(name, _)| *name == path);
        file.map(|(_, text)| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

pub fn read(files: &[(&str, &str)]) -> PfConfig {
    load("rules", &Files(files), &HostFacts::default()).unwrap_or_else(|error| panic!("{error}\n{files:?}"))
}

pub fn lowered(rules: &str) -> Result<LoweredPf, PfError> {
    lower(&read(&[("rules", rules)]), &interfaces())
}

/// em0 and em1 with addresses, and a loopback interface.
pub fn interfaces() -> Interfaces {
    let interface = |name: &str, number, addresses: &[(&str, u8)]| FilterInterface {
        name: name.to_owned(),
        number,
        groups: Vec::new(),
        addresses: addresses.iter().map(|(text, length)| (address(text), *length)).collect(),
    };
    Interfaces(vec![
        interface("lo0", 0, &[("127.0.0.1", 8)]),
        interface("em0", 1, &[("192.0.2.1", 24), ("192.0.2.7", 24), ("2001:db8::1", 64)]),
        interface("em1", 2, &[("10.0.0.1", 8)]),
    ])
}

pub fn address(text: &str) -> fullview_filter::address::Address {
    text.parse::<std::net::IpAddr>().unwrap().into()
}

/// What the compiled form decides about a packet that belongs to no state, and the packet with its tag.
pub fn decide(lowered: &LoweredPf, packet: &Packet) -> (Decision, Packet) {
    let set = RuleSet::new(lowered.parts.clone()).unwrap();
    let mut packet = *packet;
    let decision = set.check(&mut worker(&set), 1000, &mut packet);
    (decision, packet)
}

fn worker(set: &RuleSet) -> FilterWorker {
    FilterWorker::new(WorkerLimits { states: 16, ..WorkerLimits::default() }, set.counted_rules(), 7)
}

/// The last rule that is said to match, of those that decide.
fn said_to_decide(lowered: &LoweredPf, packet: &Packet) -> Option<u32> {
    let set = RuleSet::new(lowered.parts.clone()).unwrap();
    let decides = |tried: &&TriedRule| {
        let action = &set.rules()[tried.index].action;
        tried.mismatch.is_none() && !matches!(action, RuleAction::Count | RuleAction::StopIfDecided { .. })
    };
    let tried = set.tried(&mut worker(&set), packet);
    tried.iter().rfind(decides).map(|tried| tried.index as u32)
}

fn answer(decision: &Decision) -> Answer {
    match decision.verdict {
        Verdict::Pass => Answer::Pass,
        Verdict::Drop(_) => Answer::Drop,
        Verdict::Reject(reject) => Answer::Reject(reject),
        Verdict::Translate(_) => panic!("no rule translates"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_compiled_form_decides_as_the_rules_say(
        rules in generate::ruleset(),
        packets in prop::collection::vec(generate::packet(), 12),
    ) {
        let config = read(&[("rules", &rules)]);
        let lowered = lower(&config, &interfaces()).unwrap();
        let interpreter = Interpreter::new(&config, interfaces());
        for packet in packets {
            let (decision, after) = decide(&lowered, &packet);
            let expected = interpreter.decide(&packet);
            let got = answer(&decision);
            prop_assert_eq!(said_to_decide(&lowered, &packet), decision.rule, "{:?}\n{}", packet, config);
            let context = format!("{config}\n{packet:?}\n{decision:?}\n{expected:?}");
            if packet.has_options {
                // A packet with options is dropped before rules could answer it.
                prop_assert_eq!(got == Answer::Pass, expected.answer == Answer::Pass, "{}", context);
                continue;
            }
            prop_assert_eq!(got, expected.answer, "{}", context);
            let tag = lowered.tags.get(&after.tag).cloned();
            prop_assert_eq!(tag, expected.tag, "{}", context);
            if got == Answer::Pass {
                prop_assert_eq!(decision.by == DecidedBy::NewState, expected.keeps_state, "{}", context);
            }
        }
    }
}
