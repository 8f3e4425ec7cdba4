use fullview_filter::packet::{Direction, Packet};
use fullview_filter::rule::{Clause, CompiledRule, PortRange, RuleAction, Test};
use fullview_filter::ruleset::{Language, RuleSetParts};
use proptest::prelude::*;

use crate::common::{Bench, CLIENT, SERVER, pass};

fn rule() -> impl Strategy<Value = CompiledRule> {
    let action = prop_oneof![
        4 => Just(RuleAction::Pass),
        4 => Just(RuleAction::Block),
        1 => Just(RuleAction::Count),
    ];
    let tested = prop_oneof![3 => Just(None), 1 => (1_u16..3).prop_map(Some)];
    (action, 0_u16..6, 0_u16..6, prop::bool::weighted(0.2), 0_u16..8, tested).prop_map(
        |(action, a, b, quick, tag, tested)| {
            let ports = PortRange { first: a.min(b), last: a.max(b) };
            let tested = tested.map(|tag| Clause::of(Test::Tagged(tag)));
            let clauses = [Clause::of(Test::DestinationPort(ports))].into_iter().chain(tested).collect();
            let tag = if tag < 3 { tag } else { 0 };
            CompiledRule { clauses, quick, tag, ..CompiledRule::new(action) }
        },
    )
}

/// The rule that decides, found by trying one after the other (pf.conf(5)).
fn slowly(rules: &[CompiledRule], port: u16) -> Option<usize> {
    let (mut winner, mut tag) = (None, 0);
    for (index, rule) in rules.iter().enumerate() {
        let matches = rule.clauses.iter().all(|clause| match &clause.0[0].test {
            Test::DestinationPort(ports) => ports.contains(port),
            Test::Tagged(wanted) => *wanted == tag,
            other => panic!("{other:?}"),
        });
        if !matches {
            continue;
        }
        tag = if rule.tag == 0 { tag } else { rule.tag };
        if rule.action != RuleAction::Count {
            winner = Some(index);
        }
        if rule.quick {
            break;
        }
    }
    winner
}

proptest! {
    #[test]
    fn the_rule_that_decides_is_found(
        rules in prop::collection::vec(rule(), 0..40),
        plain: bool,
        ports in prop::collection::vec(0_u16..7, 1..8),
    ) {
        // Without tags and counting rules the search takes a shorter way.
        let keep = |rule: &CompiledRule| !plain || rule.action != RuleAction::Count;
        let rules: Vec<_> = rules.into_iter().filter(keep).map(|rule| CompiledRule { tag: if plain { 0 } else { rule.tag }, ..rule }).collect();
        let mut parts = RuleSetParts::new(Language::Pf);
        parts.rules = rules.clone();
        let mut bench = Bench::new(parts);
        for port in ports {
            let packet = Packet::udp(pass(Direction::In), CLIENT, (SERVER.0, port));
            prop_assert_eq!(bench.check(&packet).rule, slowly(&rules, port).map(|index| index as u32));
        }
    }
}
