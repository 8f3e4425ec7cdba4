use super::matching::Surroundings;
use super::parts::RuleSet;
use crate::packet::Packet;
use crate::packet::protocol::TCP;
use crate::rule::{CompiledRule, FlowName, RuleAction};
use crate::state::{CONNECTED, FilterWorker, FlowKey, Hit, Phase, Tracked};
use crate::verdict::{DropReason, Rewrite, Verdict};

/// One packet in one pass, and all that decides about it.
pub(super) struct Evaluation<'a> {
    pub set: &'a RuleSet,
    pub worker: &'a mut FilterWorker,
    pub now: u32,
    pub packet: &'a mut Packet,
    /// The hash of the packet's flow.
    pub hash: u64,
}

/// What a state says about a packet.
pub(super) enum Followed {
    /// The packet belongs to it.
    Valid(Hit),
    /// The packet contradicts it.
    Invalid(Hit),
    /// The packet contradicts its handshake.
    OtherHandshake(Hit),
    /// It would be one connection too many of its source. The state is gone.
    Refused,
    /// No state, or one that is over.
    None,
}

impl<'a> Evaluation<'a> {
    /// What rules are tested with.
    pub fn surroundings(&mut self) -> Surroundings<'a> {
        Surroundings { tables: &self.set.tables, draw: self.worker.random() }
    }

    /// Finds the packet's state and follows it.
    #[inline(always)]
    pub fn follow_state(&mut self, flow: Option<FlowName>) -> Followed {
        let Some(hit) = self.worker.states.find(self.packet, self.hash, flow) else { return Followed::None };
        self.worker.settle(hit.id);
        if self.set.has_expired(self.worker, hit.id, self.now) {
            self.worker.forget(hit.id, self.now);
            return Followed::None;
        }
        let before = self.worker.states.get(hit.id).0.phases();
        self.worker.fetch_windows(hit.id);
        let tracked = self.worker.states.track(hit, self.packet, self.now);
        self.worker.flows.trace.follow(hit);
        if self.worker.states.get(hit.id).0.phases() != before {
            self.worker.change_flows(hit.id, self.hash);
        }
        match tracked {
            Tracked::Valid => self.worker.note_moved(hit.id),
            _ => self.worker.flows.trace.differs(),
        }
        match tracked {
            Tracked::Valid if self.connects_too_often(hit) => {
                self.worker.forget(hit.id, self.now);
                Followed::Refused
            }
            Tracked::Valid => Followed::Valid(hit),
            Tracked::Invalid => Followed::Invalid(hit),
            Tracked::OtherHandshake => Followed::OtherHandshake(hit),
            Tracked::Reopens => {
                self.worker.forget(hit.id, self.now);
                Followed::None
            }
        }
    }

    /// Counts a connection for its source when the handshake is complete, and says whether it is one too many.
    #[inline(always)]
    fn connects_too_often(&mut self, hit: Hit) -> bool {
        let (hot, cold) = self.worker.states.get(hit.id);
        if cold.source == 0 || cold.source & CONNECTED != 0 {
            return false;
        }
        let established = hot.protocol == TCP && hot.phases() == [Phase::Established; 2];
        established && self.connect(hit.id)
    }

    #[cold]
    fn connect(&mut self, id: u32) -> bool {
        let cold = *self.worker.states.get(id).1;
        self.worker.states.set_source(id, cold.source | CONNECTED);
        let rule = self.set.rules().get(cold.rule as usize);
        let options = rule.and_then(|rule| rule.state.as_ref());
        let Some(limits) = options.and_then(|options| options.source.as_ref()) else { return false };
        if self.worker.sources.connect(cold.source - 1, limits, self.now) {
            return false;
        }
        let source = self.worker.states.get(id).0.key().source;
        limits.overload.into_iter().for_each(|table| self.worker.report_overload(table, source));
        true
    }

    /// Finds the state of the packet that an ICMP error quotes. The error goes the way of the answers to that packet.
    #[inline]
    pub fn follow_quoted(&mut self, flow: Option<FlowName>) -> Followed {
        let Some(quoted) = self.packet.quoted else { return Followed::None };
        let states = &self.worker.states;
        let key = FlowKey::quoted(&quoted).reversed();
        let direction = self.packet.pass.direction;
        let Some(hit) = states.find_key(&key, states.hash(&key), self.packet, direction, flow) else {
            return Followed::None;
        };
        self.worker.fetch_windows(hit.id);
        // Or any host that knows of a flow could send errors about it to others (CVE-2019-5598).
        let is_for_sender = quoted.source == self.packet.destination;
        let was_sent = is_for_sender && self.worker.states.sent_quoted(hit, quoted.seq);
        self.worker.settle(hit.id);
        if self.set.has_expired(self.worker, hit.id, self.now) {
            return Followed::None;
        }
        if was_sent { Followed::Valid(hit) } else { Followed::Invalid(hit) }
    }

    /// The verdict for a packet of a state: whether it needs another address.
    #[inline(always)]
    pub fn pass_by_state(&self, hit: Hit, quoted: bool) -> Verdict {
        match self.worker.states.rewrite(hit) {
            None => Verdict::Pass,
            Some(rewrite) => Verdict::Translate(Rewrite { quoted, ..rewrite }),
        }
    }

    /// The verdict of a rule that decides, apart from states.
    pub fn verdict(&self, rule: Option<&CompiledRule>) -> Verdict {
        match rule.map(|rule| &rule.action) {
            None if self.set.pass_by_default => Verdict::Pass,
            None | Some(RuleAction::Block) => Verdict::Drop(DropReason::Rule),
            Some(RuleAction::Reject(with)) => super::reject::answer(with, self.set.language, self.packet),
            Some(_) => Verdict::Pass,
        }
    }

    /// Counts the packet for a rule.
    #[inline(always)]
    pub fn count(&mut self, rule: u32) {
        self.worker.flows.trace.count(rule);
        self.worker.counters.add(rule, self.packet.length);
    }

    /// Undoes what a translation did to the packet, for which the caller writes the verdict into the packet's bytes. The
    /// tag stays.
    pub fn restore(&mut self, original: &Packet) {
        *self.packet = Packet { tag: self.packet.tag, ..*original };
    }
}
