use super::evaluation::Evaluation;
use super::parts::{Language, RuleSet};
use super::{ipfw_semantics, pf_semantics};
use crate::packet::Packet;
use crate::state::flow::PassTrace;
use crate::state::{FilterWorker, FlowKey};
use crate::verdict::{DecidedBy, Decision, Verdict};

/// How many states a call of [`RuleSet::sweep`] looks at, and how many of them it removes, at most.
const SWEPT: u32 = 1024;
const REMOVED: u32 = 32;
/// The sweep visits every state once in so many milliseconds (pf's `timeout interval`).
const INTERVAL: u32 = 10_000;
/// For so many packets at once the memory of their states is requested.
const STEP: usize = 32;

impl RuleSet {
    /// Decides about a packet in one pass, and makes or follows its state. The rules may give the packet a tag, which the
    /// caller carries to its next pass.
    #[inline]
    pub fn check(&self, worker: &mut FilterWorker, now: u64, packet: &mut Packet) -> Decision {
        let hash = hash(worker, packet, now);
        self.check_hashed(worker, now as u32, packet, hash)
    }

    /// As [`Self::check`] for several packets in order. The memory that they need is requested for all before the first is
    /// decided about. `decisions` is as long as `packets`.
    pub fn check_burst(
        &self,
        worker: &mut FilterWorker,
        now: u64,
        packets: &mut [Packet],
        decisions: &mut [Decision],
    ) {
        for (packets, decisions) in packets.chunks_mut(STEP).zip(decisions.chunks_mut(STEP)) {
            let mut hashes = [0; STEP];
            let hashes = &mut hashes[..packets.len()];
            self.hash_burst(worker, packets, hashes);
            self.check_hashed_burst(worker, now, packets, hashes, |place, decision| {
                decisions[place] = *decision;
            });
        }
    }

    /// The hash of each packet's flow, for [`Self::check_hashed_burst`]. Both passes of a packet have the same one, as long
    /// as its addresses and ports stay as they are.
    #[inline]
    pub fn hash_burst(&self, worker: &FilterWorker, packets: &[Packet], hashes: &mut [u64]) {
        for (place, packet) in hashes.iter_mut().zip(packets) {
            *place = worker.states.hash(&FlowKey::of(packet));
        }
    }

    /// As [`Self::check_burst`] for packets whose flows are hashed, each with its hash. `decided` gets the place and the decision of
    /// each.
    #[inline]
    pub fn check_hashed_burst(
        &self,
        worker: &mut FilterWorker,
        now: u64,
        packets: &mut [Packet],
        hashes: &[u64],
        mut decided: impl FnMut(usize, &Decision),
    ) {
        let mut place = 0;
        for (packets, hashes) in packets.chunks_mut(STEP).zip(hashes.chunks(STEP)) {
            worker.states.touch(hashes);
            self.touched_tables
                .touch(&self.tables, packets, |place| worker.states.seems_to_have(hashes[place]));
            for (packet, known) in packets.iter_mut().zip(hashes) {
                // A later fragment has the ports of the first one, which may have come since.
                let hash = if packet.is_fragment() { hash(worker, packet, now) } else { *known };
                let decision = self.check_hashed(worker, now as u32, packet, hash);
                worker.flows.keep_trace(place);
                decided(place, &decision);
                place += 1;
            }
        }
    }

    #[inline(always)]
    fn check_hashed(&self, worker: &mut FilterWorker, now: u32, packet: &mut Packet, hash: u64) -> Decision {
        worker.flows.trace = PassTrace::START;
        if self.skip.contains(packet.pass.interface) {
            return Decision { verdict: Verdict::Pass, rule: None, by: DecidedBy::Skipped };
        }
        let protocol = packet.protocol;
        let evaluation = Evaluation { set: self, worker: &mut *worker, now, packet, hash };
        let decision = match self.language {
            Language::Pf => pf_semantics::decide(evaluation),
            Language::Ipfw => ipfw_semantics::decide(evaluation),
        };
        let passes = matches!(decision.verdict, Verdict::Pass | Verdict::Translate(_));
        if !passes || !self.repeats(protocol, &decision) {
            worker.flows.trace.differs();
        }
        decision
    }

    /// Whether the next whole UDP packet, or plain TCP segment, of the flow is decided about in the same way while no state of
    /// it begins or ends, or refuses a segment.
    #[inline(always)]
    fn repeats(&self, protocol: u8, decision: &Decision) -> bool {
        match decision.by {
            DecidedBy::State => true,
            DecidedBy::Rule => self.is_constant(protocol),
            _ => false,
        }
    }

    /// Forgets states and sources that have expired: a bounded piece of the table, so that the whole is visited every ten seconds. The
    /// worker calls it once a burst.
    pub fn sweep(&self, worker: &mut FilterWorker, now: u64) {
        let now = now as u32;
        self.adapt(worker);
        worker.sweep_sources(now);
        let entries = worker.states.capacity() as u64;
        let due = entries * u64::from(now.wrapping_sub(worker.swept)) / u64::from(INTERVAL);
        if due == 0 {
            return;
        }
        // What one call leaves is not caught up: a burst never pays for a pause.
        worker.swept = now;
        let mut removed = 0;
        for visited in 0..due.min(u64::from(SWEPT)).min(entries) {
            let id = worker.cursor;
            removed += u32::from(self.visit(worker, id, now));
            if removed == REMOVED {
                // The next burst goes on, although the clock may not have moved on.
                worker.swept = now.wrapping_sub(1);
                return worker.visited(visited as usize);
            }
            worker.cursor = if u64::from(id) + 1 == entries { 0 } else { id + 1 };
        }
        worker.visited(due.min(u64::from(SWEPT)) as usize);
    }

    /// Removes a state that has expired.
    fn visit(&self, worker: &mut FilterWorker, id: u32, now: u32) -> bool {
        if !worker.states.get(id).0.is_used() {
            return false;
        }
        worker.settle(id);
        let expired = self.has_expired(worker, id, now);
        if expired {
            worker.forget(id, now);
        }
        expired
    }

    /// Whether a state's last packet is too long ago.
    #[inline(always)]
    pub(crate) fn has_expired(&self, worker: &mut FilterWorker, id: u32, now: u32) -> bool {
        self.seems_expired(worker, id, now) && self.has_no_newer_packet(worker, id, now)
    }

    /// The last packet may have been forwarded elsewhere.
    #[cold]
    fn has_no_newer_packet(&self, worker: &mut FilterWorker, id: u32, now: u32) -> bool {
        worker.count_known(id);
        self.seems_expired(worker, id, now)
    }

    #[inline(always)]
    fn seems_expired(&self, worker: &FilterWorker, id: u32, now: u32) -> bool {
        let (hot, cold) = worker.states.get(id);
        // A clock that went back makes no age.
        let age = now.wrapping_sub(hot.last) as i32;
        let scaled = |timeout: u32| (u64::from(timeout) * u64::from(worker.timeout_scale)) >> 16;
        if age <= 0 || (age as u64) < scaled(self.shortest) {
            return false;
        }
        let timeouts = self.timeouts.get(usize::from(cold.timeouts)).unwrap_or(&self.timeouts[0]);
        age as u64 >= scaled(timeouts.of(hot.protocol, hot.phases()))
    }

    /// Shortens timeouts as the table fills (pf.conf(5), `adaptive.start` and `adaptive.end`).
    fn adapt(&self, worker: &mut FilterWorker) {
        const WHOLE: u64 = 1 << 16;
        let (start, end) = (u64::from(self.adaptive.0), u64::from(self.adaptive.1));
        let states = worker.estimated_states();
        let scale = if end <= start || states <= start {
            WHOLE
        } else {
            end.saturating_sub(states) * WHOLE / (end - start)
        };
        worker.timeout_scale = scale as u32;
    }
}

/// The hash of the packet's flow, also of a fragment.
#[inline(always)]
fn hash(worker: &mut FilterWorker, packet: &mut Packet, now: u64) -> u64 {
    if packet.is_fragment() {
        worker.fragments.complete(packet, now as u32);
    }
    worker.states.hash(&FlowKey::of(packet))
}
