//! Our filter's verdicts.

use std::io;

use fullview_filter::interfaces::Interfaces;
use fullview_filter::ipfw::IpfwConfig;
use fullview_filter::packet::{self, Direction, Pass};
use fullview_filter::pf::files::RulesetFiles;
use fullview_filter::pf::host::HostFacts;
use fullview_filter::pf::load::load;
use fullview_filter::pf::lower::lower;
use fullview_filter::ruleset::{RuleSet, RuleSetParts};
use fullview_filter::state::{FilterWorker, WorkerLimits};
use fullview_filter::verdict::Verdict;

use super::traffic::Packet;

/// A rule set without other files.
struct Text<'t>(&'t str);

impl RulesetFiles for Text<'_> {
    fn read(&self, _path: &str) -> io::Result<String> {
        Ok(self.0.to_owned())
    }
}

pub fn by_pf(text: &str, packets: &[Packet]) -> Vec<bool> {
    let config =
        load("rules", &Text(text), &HostFacts::default()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verdicts(lower(&config, &Interfaces(Vec::new())).unwrap().parts, packets)
}

pub fn by_ipfw(text: &str, packets: &[Packet]) -> Vec<bool> {
    let config = IpfwConfig::load("rules", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verdicts(config.lower(&Interfaces(Vec::new())), packets)
}

fn verdicts(parts: RuleSetParts, packets: &[Packet]) -> Vec<bool> {
    let set = RuleSet::new(parts).unwrap();
    let mut worker = FilterWorker::new(WorkerLimits::default(), set.counted_rules(), 1);
    packets.iter().map(|packet| passes(&set, &mut worker, packet)).collect()
}

/// Whether it passes as it comes in and as it leaves.
fn passes(set: &RuleSet, worker: &mut FilterWorker, packet: &Packet) -> bool {
    let [near, far] = if packet.is_from_left { [1, 2] } else { [2, 1] };
    [(Direction::In, near), (Direction::Out, far)].into_iter().all(|(direction, interface)| {
        let pass = Pass { direction, interface, received_on: near };
        let mut seen = packet::Packet::parse(&packet.bytes, pass).unwrap();
        set.check(worker, 1000, &mut seen).verdict == Verdict::Pass
    })
}
