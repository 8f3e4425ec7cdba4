//! nftables as an independent judge: random rule sets that pf, ipfw and nftables all can express decide about random packets in a
//! kernel with nftables and in our filter, verdict by verdict.
//!
//! `FULLVIEW_NFT_SETS` says how many rule sets there are (20), `FULLVIEW_NFT_SEED` which. A failure prints the rule set.

mod kernel;
mod languages;
mod ours;
mod rules;
mod traffic;

use fullview_testnet::{has, may_run};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use kernel::Kernel;
use languages::{ipfw, nft, pf_first_match, pf_last_match};
use rules::Rules;
use traffic::{Packet, conversations, packets};

fn variable(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text}")))
}

/// What each of our languages decides, by its name.
fn of_languages(rules: &Rules, packets: &[Packet]) -> [(&'static str, String, Vec<bool>); 3] {
    let [quick, last] = [pf_first_match(rules), pf_last_match(rules)];
    let ipfw = ipfw(rules);
    let verdicts = [ours::by_pf(&quick, packets), ours::by_pf(&last, packets), ours::by_ipfw(&ipfw, packets)];
    let [by_quick, by_last, by_ipfw] = verdicts;
    [("pf, quick", quick, by_quick), ("pf, last match", last, by_last), ("ipfw", ipfw, by_ipfw)]
}

/// How many of the packets pass; nothing if the kernel has no nftables.
fn compare(kernel: &mut Kernel, rules: &Rules, packets: &[Packet], context: &str) -> Option<usize> {
    let ours = of_languages(rules, packets);
    let nft = nft(rules);
    let loaded = kernel.load(&nft);
    if !has(loaded.is_ok(), &format!("nftables with these rules ({loaded:?})\n{nft}")) {
        return None;
    }
    let expected = kernel.passed(packets, &ours[0].2);
    for (language, text, verdicts) in &ours {
        for ((packet, passes), expected) in packets.iter().zip(verdicts).zip(&expected) {
            assert_eq!(passes, expected, "{context}, {language}: {packet}\n{text}\n{nft}");
        }
    }
    Some(expected.iter().filter(|passes| **passes).count())
}

/// Rule sets without states are judged in one kernel; one with states needs a kernel that remembers nothing.
fn compare_sets(keep_states: bool) {
    if !may_run(&["ip", "nft"]) {
        return;
    }
    let [sets, seed] =
        [("FULLVIEW_NFT_SETS", 20), ("FULLVIEW_NFT_SEED", 1)].map(|(name, usual)| variable(name, usual));
    let (mut random, mut kernel) = (ChaCha8Rng::seed_from_u64(seed), Kernel::new());
    let (mut passed, mut sent) = (0, 0);
    for set in 0..sets {
        if keep_states && set > 0 {
            kernel = Kernel::new();
        }
        let rules = Rules::random(&mut random, keep_states);
        let packets = if keep_states { conversations(&mut random) } else { packets(&mut random) };
        let compared = compare(&mut kernel, &rules, &packets, &format!("seed {seed}, set {set}"));
        let Some(number) = compared else { return };
        (passed, sent) = (passed + number, sent + packets.len());
    }
    assert!(
        passed > sent / 20 && passed < sent * 19 / 20,
        "{passed} of {sent} packets pass: rules that decide nothing"
    );
}

#[test]
fn rules_without_states_decide_as_those_of_nftables() {
    compare_sets(false);
}

#[test]
fn rules_with_states_decide_as_those_of_nftables_with_conntrack() {
    compare_sets(true);
}
