//! The words in labels that stand for parts of their rule.

use crate::pf::address::{NumberTest, PfPeer, PortTest};
use crate::pf::names::protocols;
use crate::pf::rule::PfRule;

/// Replaces `$if`, `$srcaddr`, `$dstaddr`, `$srcport`, `$dstport`, `$proto` and `$nr`.
pub fn expand(label: &str, rule: &PfRule, number: usize) -> String {
    let interface = rule.interface.as_ref().map_or("any", |test| &test.name);
    let parts = [
        ("$if", interface.to_owned()),
        ("$srcaddr", address(&rule.from)),
        ("$dstaddr", address(&rule.to)),
        ("$srcport", port(rule.from.port)),
        ("$dstport", port(rule.to.port)),
        ("$proto", protocol(rule.protocol.unwrap_or(0))),
        ("$nr", number.to_string()),
    ];
    parts.iter().fold(label.to_owned(), |label, (word, text)| label.replace(word, text))
}

fn address(peer: &PfPeer) -> String {
    peer.host.to_string()
}

fn protocol(number: u8) -> String {
    match protocols::name(number) {
        Some(name) => name.to_owned(),
        None if number == 0 => "ip".to_owned(),
        None => number.to_string(),
    }
}

fn port(test: Option<PortTest>) -> String {
    match test {
        None => String::new(),
        Some(NumberTest::Equal(port)) => port.to_string(),
        Some(NumberTest::NotEqual(port)) => format!("!={port}"),
        Some(NumberTest::Less(port)) => format!("<{port}"),
        Some(NumberTest::LessOrEqual(port)) => format!("<={port}"),
        Some(NumberTest::Greater(port)) => format!(">{port}"),
        Some(NumberTest::GreaterOrEqual(port)) => format!(">={port}"),
        Some(NumberTest::Range(first, last)) => format!("{first}:{last}"),
        Some(NumberTest::Inside(low, high)) => format!("{low}><{high}"),
        Some(NumberTest::Outside(low, high)) => format!("{low}<>{high}"),
    }
}
