//! What pf's states do with the packets that follow the first one.

use fullview_filter::address::Address;
use fullview_filter::packet::{Direction, Packet, Pass};
use fullview_filter::ruleset::RuleSet;
use fullview_filter::state::FilterWorker;
use fullview_filter::verdict::{DecidedBy, Decision, Verdict};

use crate::{lowered, worker};

const CLIENT: (Address, u16) = (Address::inet(0x0a00_0002), 40_000);
const SERVER: (Address, u16) = (Address::inet(0xc633_6402), 53);

/// A rule set with a worker.
struct Firewall {
    set: RuleSet,
    worker: FilterWorker,
}

impl Firewall {
    fn new(rules: &str) -> Self {
        let set = RuleSet::new(lowered(rules).unwrap().parts).unwrap();
        let worker = worker(&set);
        Firewall { set, worker }
    }

    /// Decides about a packet, and gives it the tag of its rules.
    fn check(&mut self, packet: &mut Packet) -> Decision {
        self.set.check(&mut self.worker, 1000, packet)
    }
}

/// A request of the client or an answer of the server, as it passes em1 (the client's side) or em0.
fn packet(from_client: bool, direction: Direction) -> Packet {
    let interface = if from_client == (direction == Direction::In) { 2 } else { 1 };
    let received_on = if from_client { 2 } else { 1 };
    let pass = Pass { direction, interface, received_on };
    if from_client { Packet::udp(pass, CLIENT, SERVER) } else { Packet::udp(pass, SERVER, CLIENT) }
}

/// pf's tags are no names of states, whatever number a tag has.
#[test]
fn a_state_is_found_whatever_tag_its_packets_get() {
    for tag in ["wan", "lan", "dmz", "SPOOFED", "RFC1918", "good"] {
        let rules = format!("block\npass in on em1 proto udp tag {tag}\npass out on em0 tagged {tag}\n");
        let mut firewall = Firewall::new(&rules);
        for by in [DecidedBy::NewState, DecidedBy::State] {
            let mut request = packet(true, Direction::In);
            assert_eq!(firewall.check(&mut request).by, by, "{tag}");
            let mut leaving = Packet { tag: request.tag, ..packet(true, Direction::Out) };
            assert_eq!(firewall.check(&mut leaving).by, by, "{tag}");
        }
        for direction in [Direction::In, Direction::Out] {
            let decision = firewall.check(&mut packet(false, direction));
            assert_eq!((decision.verdict, decision.by), (Verdict::Pass, DecidedBy::State), "{tag}");
        }
        assert_eq!(firewall.worker.states().len(), 2, "{tag}");
    }
}

fn with_options(packet: Packet) -> Packet {
    Packet { has_options: true, ..packet }
}

/// pf.conf(5), `allow-opts`: "For packets that match state, the rule that initially created the state is used."
#[test]
fn the_rule_that_made_a_state_decides_about_options() {
    let others = "block\npass out on em1 allow-opts\n";
    for (rule, nat, passes) in [
        ("pass in proto udp", "", false),
        ("pass in proto udp tag lan", "", false),
        ("pass in proto udp allow-opts", "", true),
        ("pass in proto udp allow-opts tag lan", "", true),
        (
            "pass in proto udp no state allow-opts",
            "rdr on em1 proto udp from any to any port 53 -> 10.0.0.9\n",
            true,
        ),
    ] {
        let mut firewall = Firewall::new(&format!("{nat}{others}{rule}\n"));
        assert_eq!(firewall.check(&mut packet(true, Direction::In)).by, DecidedBy::NewState, "{rule}");
        let mut options = with_options(packet(true, Direction::In));
        let decision = firewall.check(&mut options);
        assert_eq!(decision.by, DecidedBy::State, "{rule}");
        assert_eq!(!matches!(decision.verdict, Verdict::Drop(_)), passes, "{rule}");
        assert_eq!(options.tag != 0, rule.ends_with("lan"), "{rule}");
        let plain = firewall.check(&mut packet(true, Direction::In)).verdict;
        assert!(matches!(plain, Verdict::Pass | Verdict::Translate(_)), "{rule}");
    }
}

#[test]
fn a_translation_that_passes_lets_no_options_through() {
    let rules = "rdr pass on em1 proto udp from any to any port 53 -> 10.0.0.9\npass allow-opts\n";
    let mut firewall = Firewall::new(rules);
    for (options, passes) in [(true, false), (false, true), (true, false)] {
        let decision = firewall.check(&mut Packet { has_options: options, ..packet(true, Direction::In) });
        assert_eq!(matches!(decision.verdict, Verdict::Translate(_)), passes, "{decision:?}");
    }
}
