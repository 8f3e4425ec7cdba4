use fullview_filter::address::Address;
use fullview_filter::packet::protocol::TCP;
use fullview_filter::packet::{Direction, Packet, Pass, TcpSegment, Transport};
use fullview_filter::rule::{Clause, CompiledRule, RuleAction, StateOptions, Test};
use fullview_filter::ruleset::{Language, RuleSet, RuleSetParts};
use fullview_filter::state::{FilterWorker, WorkerLimits};
use fullview_filter::verdict::{Decision, Verdict};

pub const CLIENT: (Address, u16) = (Address::inet(0x0a00_0001), 40_000);
pub const SERVER: (Address, u16) = (Address::inet(0xc633_6402), 80);

pub fn pass(direction: Direction) -> Pass {
    Pass { direction, interface: 1, received_on: 1 }
}

/// A rule set with a worker and a clock.
pub struct Bench {
    pub set: RuleSet,
    pub worker: FilterWorker,
    pub now: u64,
}

impl Bench {
    pub fn new(parts: RuleSetParts) -> Self {
        Bench::with_limits(parts, WorkerLimits { states: 100, ..WorkerLimits::default() })
    }

    pub fn with_limits(parts: RuleSetParts, limits: WorkerLimits) -> Self {
        let set = RuleSet::new(parts).unwrap();
        let worker = FilterWorker::new(limits, set.counted_rules(), 42);
        Bench { set, worker, now: 1000 }
    }

    pub fn check(&mut self, packet: &Packet) -> Decision {
        self.set.check(&mut self.worker, self.now, &mut packet.clone())
    }

    pub fn passes(&mut self, packet: &Packet) -> bool {
        matches!(self.check(packet).verdict, Verdict::Pass | Verdict::Translate(_))
    }

    pub fn states(&self) -> usize {
        self.worker.states().len()
    }
}

/// `block` and then `pass in` with the clauses and a state.
pub fn block_but(clauses: Vec<Clause>, state: Option<StateOptions>) -> RuleSetParts {
    let mut parts = RuleSetParts::new(Language::Pf);
    let inward = Clause::of(Test::Direction(Direction::In));
    let clauses = [vec![inward], clauses].concat();
    parts.rules = vec![
        CompiledRule::new(RuleAction::Block),
        CompiledRule { clauses, state, ..CompiledRule::new(RuleAction::Pass) },
    ];
    parts
}

/// A segment of the client on its way in, or of the server on its way out.
pub fn segment(from_client: bool, tcp: TcpSegment) -> Packet {
    let (direction, source, destination) =
        if from_client { (Direction::In, CLIENT, SERVER) } else { (Direction::Out, SERVER, CLIENT) };
    let mut packet = Packet::udp(pass(direction), source, destination);
    packet.protocol = TCP;
    packet.transport = Transport::Tcp(tcp);
    packet
}
