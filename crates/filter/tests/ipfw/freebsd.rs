//! The rules of FreeBSD's own tests of ipfw: each is accepted and listed as what FreeBSD compiles it to, or refused by the name
//! of what is not supported.

use fullview_filter::ipfw::IpfwConfig;

/// Actions and options among them that are not supported.
const REFUSED: [&str; 16] = [
    "1420",
    "tcp-setmss",
    "eaction",
    "abort",
    "abort6",
    "queue",
    "pipe",
    "netgraph",
    "ngtee",
    "divert",
    "tee",
    "call",
    "setfib",
    "setdscp",
    "reass",
    "return",
];

/// The rules of FreeBSD's tests that are supported, those that it makes while it runs among them, and what its instructions mean, as
/// `ipfw list` prints it.
const MEANINGS: &[(&str, &str)] = &[
    ("add 200 allow ip from any to any", "00200 allow ip from any to any"),
    ("add allow ip from { 1.2.3.4 or 2.3.4.5 } to any", "00100 allow ip from { 1.2.3.4 or 2.3.4.5 } to any"),
    ("add allow ip from table(AAA) to table(BBB)", "00100 allow ip from table(AAA) to table(BBB)"),
    (
        "add allow ip from any to 1.2.3.4 // test comment",
        "00100 allow ip from any to 1.2.3.4 // test comment",
    ),
    ("add // test comment", "00100 count // test comment"),
    ("add deny ip from any to any // a  'b  c' ''", "00100 deny ip from any to any // a b c"),
    ("add check-state :OUT // test comment", "00100 check-state :OUT // test comment"),
    ("add allow tcp from any to any keep-state :OUT", "00100 allow tcp from any to any keep-state :OUT"),
    ("add allow tcp from any to any record-state", "00100 allow tcp from any to any record-state :default"),
    ("add unreach needfrag ip from any to any", "00100 unreach needfrag ip from any to any"),
    ("add unreach6 port ip from any to any", "00100 unreach6 port ip from any to any"),
    ("add skipto 142 ip from any to any", "00100 skipto 142 ip from any to any"),
    ("add prob 0.7 allow ip from any to any", "00100 prob 0.700000 allow ip from any to any"),
    ("add allow ip from any 57-59,41 to any", "00100 allow ip from any 57-59,41 to any"),
    ("add allow ip from any to any 57", "00100 allow ip from any to any dst-port 57"),
    ("add allow tcp from any to any", "00100 allow tcp from any to any"),
    ("add allow ip from any to any", "00100 allow ip from any to any"),
    ("add accept ip from any to any", "00100 allow ip from any to any"),
    ("add deny ip from any to any", "00100 deny ip from any to any"),
    ("add reject ip from any to any", "00100 reject ip from any to any"),
    ("add reset ip from any to any", "00100 reset ip from any to any"),
    ("add reset6 ip from any to any", "00100 reset6 ip from any to any"),
    ("add unreach port ip from any to any", "00100 unreach port ip from any to any"),
    ("add count ip from any to any", "00100 count ip from any to any"),
    ("add skipto 42 ip from any to any", "00100 skipto 42 ip from any to any"),
];

/// The texts between quotes after `"in": ` and as first members of the tuples of actions.
fn rules_of(source: &str) -> Vec<String> {
    let quoted = |rest: &str| rest.split('"').nth(1).map(str::to_owned);
    let whole = source.match_indices("\"in\": \"add").filter_map(|(at, _)| quoted(&source[at + 5..]));
    let start = source.find("def test_add_rule").unwrap();
    let end = source.find("def test_add_action").unwrap();
    let section = &source[start..end];
    let actions = section.match_indices("pytest.param(").filter_map(|(at, _)| {
        let rest = section[at..].split_once('(').unwrap().1.trim_start();
        rest.starts_with('(').then(|| quoted(rest)).flatten()
    });
    whole.chain(actions.map(|action| format!("add {action} ip from any to any"))).collect()
}

fn meaning(rule: &str) -> &'static str {
    let known = MEANINGS.iter().find(|(known, _)| *known == rule);
    known.unwrap_or_else(|| panic!("{rule}: accepted, and nothing says what it means")).1
}

#[test]
fn every_rule_of_freebsd_is_listed_with_its_meaning_or_refused_by_name() {
    let Some(path) = fullview_testnet::shared::data("filter/ipfw/test_add_rule.py") else { return };
    let rules = rules_of(&std::fs::read_to_string(path).unwrap());
    assert!(rules.len() > 35, "{rules:#?}");
    for rule in rules {
        let mut words = rule.split_whitespace();
        let refused = words.find(|word| REFUSED.contains(word));
        match (IpfwConfig::load("f", &rule), refused) {
            (Ok(config), None) => assert_eq!(config.rules[0].to_string(), meaning(&rule)),
            (Err(error), Some(word)) => {
                assert!(error.message.starts_with(&format!("`{word}` is not supported")), "{rule}: {error}");
            }
            (Ok(_), Some(word)) => panic!("{rule}: accepted in spite of {word}"),
            (Err(error), None) => panic!("{rule}: {error}"),
        }
    }
}

/// Also without FreeBSD's file.
#[test]
fn accepted_rules_mean_what_freebsd_compiles() {
    for (rule, meaning) in MEANINGS {
        assert_eq!(crate::language::printed(rule), *meaning);
    }
}
