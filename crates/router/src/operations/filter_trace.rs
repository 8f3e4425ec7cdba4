//! What the rules of a filter say about a traced packet, pass by pass. The states of the worker are not asked: by the time of
//! the explanation they have changed.

use fullview_filter::packet::{Direction, Packet, Pass};
use fullview_filter::ruleset::RuleSet;
use fullview_filter::state::{FilterWorker, WorkerLimits};
use fullview_filter::verdict::{DecidedBy, Decision, Verdict as FilterVerdict};
use fullview_plane::adjacency::Adjacency;
use fullview_plane::explain::{Explanation, Step};
use fullview_plane::trace::TracedPacket;
use fullview_plane::verdict::{Punt, Reason, Verdict};
use fullview_plane::view::View;
use fullview_plane::wire::ethernet::Frame;

use super::filter::rule;

/// The packet is alone: a few states are enough.
const LIMITS: WorkerLimits = WorkerLimits { states: 16, sources: 16, fragments: 1 };

/// The steps of an explanation, with those of the filter between them.
pub struct TracedSteps {
    pub steps: Vec<String>,
    /// The last step is that a rule dropped the packet.
    pub names_drop: bool,
}

impl TracedSteps {
    pub fn of(
        rules: Option<&RuleSet>,
        view: &View,
        note: &TracedPacket,
        explanation: &Explanation,
    ) -> TracedSteps {
        let passes = rules.and_then(|rules| FilterPasses::of(rules, view, note, explanation));
        let mut traced = TracedSteps { steps: Vec::new(), names_drop: false };
        for step in &explanation.steps {
            traced.steps.push(step.to_string());
            let pass = passes.as_ref().and_then(|passes| passes.after(step));
            traced.steps.extend(pass.map(|pass| pass.text.clone()));
            if pass.is_some_and(|pass| pass.drops) {
                traced.steps.push(note.verdict.to_string());
                traced.names_drop = true;
                break;
            }
        }
        traced
    }
}

/// What the rules say about a packet on its way in and on its way out.
struct FilterPasses {
    incoming: TracedPass,
    /// Absent if the packet was dropped before, or translated: then it leaves another way than the explanation says.
    outgoing: Option<TracedPass>,
}

struct TracedPass {
    text: String,
    drops: bool,
    translates: bool,
}

impl FilterPasses {
    /// The pass that follows a step.
    fn after(&self, step: &Step) -> Option<&TracedPass> {
        match step {
            Step::Headers(_) => Some(&self.incoming),
            Step::NextHop { .. } => self.outgoing.as_ref(),
            _ => None,
        }
    }

    /// `None` if the filter did not judge the packet, or not by its rules.
    fn of(
        rules: &RuleSet,
        view: &View,
        note: &TracedPacket,
        explanation: &Explanation,
    ) -> Option<FilterPasses> {
        let dropped = match note.verdict {
            Verdict::Drop(Reason::FilterRule) | Verdict::Reject(_) => true,
            _ if note.is_translated => return None,
            Verdict::Forward | Verdict::Punt(Punt::Glean) => false,
            _ => return None,
        };
        let frame = Frame::new_checked(note.before.frame()).ok()?;
        let number = view.port(note.port)?.interface(frame.vlan().unwrap_or(0))?;
        let pass = Pass { direction: Direction::In, interface: number, received_on: number };
        let mut packet = Packet::NOTHING;
        packet.read(frame.payload(), pass).ok()?;
        let mut judge =
            Judge { rules, view, worker: FilterWorker::new(LIMITS, rules.counted_rules(), 1), dropped };
        let incoming = judge.pass(&mut packet);
        let left = egress(view, explanation).filter(|_| !incoming.drops && !incoming.translates);
        let outgoing = left.map(|interface| {
            packet.pass = Pass { direction: Direction::Out, interface, ..pass };
            judge.pass(&mut packet)
        });
        Some(FilterPasses { incoming, outgoing })
    }
}

/// The interface by which the packet would leave.
fn egress(view: &View, explanation: &Explanation) -> Option<u16> {
    let hop = explanation.steps.iter().rev().find_map(|step| match step {
        Step::NextHop { hop, .. } => Some(*hop),
        _ => None,
    })?;
    match view.parts().adjacencies.get(hop)? {
        Adjacency::Neighbor { interface, .. } | Adjacency::Glean { interface } => Some(interface),
        _ => None,
    }
}

struct Judge<'a> {
    rules: &'a RuleSet,
    view: &'a View,
    worker: FilterWorker,
    /// The loop dropped the packet by a rule.
    dropped: bool,
}

impl Judge<'_> {
    fn pass(&mut self, packet: &mut Packet) -> TracedPass {
        let pass = packet.pass;
        let decision = self.rules.check(&mut self.worker, 0, packet);
        let direction = if pass.direction == Direction::In { "in" } else { "out" };
        let interface = self.view.interface(pass.interface).map_or("an interface", |one| one.name.as_str());
        let objects = matches!(decision.verdict, FilterVerdict::Drop(_) | FilterVerdict::Reject(_));
        let by = self.by(&decision);
        let says = match (objects, self.dropped) {
            (false, _) => format!("passes by {by}"),
            (true, true) => format!("dropped by {by}"),
            (true, false) => format!("passes by its state; without one it would be dropped by {by}"),
        };
        TracedPass {
            text: format!("filter, {direction} on {interface}: {says}"),
            drops: objects && self.dropped,
            translates: matches!(decision.verdict, FilterVerdict::Translate(_)),
        }
    }

    fn by(&self, decision: &Decision) -> String {
        let decides = decision.rule.and_then(|index| rule(self.rules, index));
        match decides {
            Some(rule) => format!("rule {}: {}", rule.number, rule.text),
            None if decision.by == DecidedBy::Skipped => "`set skip`".into(),
            None => "the default".into(),
        }
    }
}
