use super::flow_key::FlowKey;
use super::phase::Phase;
use crate::address::Address;
use crate::packet::protocol::TCP;
use crate::packet::{Direction, IcmpMessage, Packet, Transport, icmp_counterpart};
use crate::rule::{Side, Tracking};

/// Which passes of its packets a state is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PassBinding {
    /// The first packet's direction was in: answers pass out (pf).
    In,
    /// The first packet's direction was out: answers pass in (pf).
    Out,
    /// Both passes of each packet (ipfw).
    Both,
}

impl From<Direction> for PassBinding {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::In => PassBinding::In,
            Direction::Out => PassBinding::Out,
        }
    }
}

impl PassBinding {
    /// Whether a packet in this direction may belong to the state, if it goes the way of the first packet or the other.
    #[inline(always)]
    pub fn includes(self, direction: Direction, forward: bool) -> bool {
        match self {
            PassBinding::Both => true,
            PassBinding::In => forward == (direction == Direction::In),
            PassBinding::Out => forward == (direction == Direction::Out),
        }
    }
}

/// Which end of a flow is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StateTranslation {
    No,
    Source,
    Destination,
}

impl StateTranslation {
    /// The end, if one is translated.
    #[inline(always)]
    pub fn side(self) -> Option<Side> {
        match self {
            StateTranslation::No => None,
            StateTranslation::Source => Some(Side::Source),
            StateTranslation::Destination => Some(Side::Destination),
        }
    }
}

impl From<Option<Side>> for StateTranslation {
    fn from(side: Option<Side>) -> Self {
        match side {
            None => StateTranslation::No,
            Some(Side::Source) => StateTranslation::Source,
            Some(Side::Destination) => StateTranslation::Destination,
        }
    }
}

/// One end of a flow, as its packets showed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Peer {
    /// The sequence number after the last byte that it has sent.
    pub sent: u32,
    /// The end of the window that the other end has opened for it.
    pub limit: u32,
    /// The largest window that it has offered, before scaling.
    pub window: u16,
    /// The shift of its window; [`NO_SCALE`] if it offered none.
    pub scale: u8,
    pub phase: Phase,
}

/// In the first [`HotState::phase_scale`]: something else moves the windows too
/// ([`FlowOffload`](super::flow::FlowOffload)).
const SHARED: u8 = 8;
const PHASE: u8 = 7;

/// The value of a shift that says that the end scales no windows.
pub(super) const NO_SCALE: u8 = 15;

/// The part of a state that every packet of its flow reads and writes: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct HotState {
    /// The first packet's addresses and ports, before translation.
    pub(super) source: Address,
    pub(super) destination: Address,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    /// The time of the last packet.
    pub(crate) last: u32,
    pub(super) sent: [u32; 2],
    pub(super) limit: [u32; 2],
    pub(super) window: [u16; 2],
    /// Three bits of phase and four of scale for each end; and [`SHARED`] in the first.
    pub(super) phase_scale: [u8; 2],
    pub(crate) protocol: u8,
    /// See [`StateFlags`].
    pub(super) flags: u8,
}

/// The part of a state that is needed when it begins or ends, and by translated packets.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ColdState {
    /// The address and port of the translated end after translation.
    pub translated: Address,
    pub bytes: u64,
    pub packets: u32,
    /// When it was made.
    pub created: u32,
    /// The index of the rule that made it, in the rule set of `generation`.
    pub rule: u32,
    /// The number of the source that it counts for, plus one; zero without. The highest bit is set if it counts as a
    /// connection there.
    pub source: u32,
    pub translated_port: u16,
    pub interface: u16,
    /// ipfw: the [`FlowName`](crate::rule::FlowName). pf: the tag that its packets get, and in the highest bit whether they
    /// may have IP options.
    pub mark: u16,
    /// The index of its timeouts, also of that generation.
    pub timeouts: u8,
    pub generation: u8,
}

/// In [`ColdState::source`]: the state counts as a connection.
pub(crate) const CONNECTED: u32 = 1 << 31;

const _: () = assert!(size_of::<HotState>() == 64 && size_of::<ColdState>() == 48);

/// The facts about a state that take a byte together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateFlags {
    pub binding: PassBinding,
    pub translation: StateTranslation,
    pub if_bound: bool,
    pub tracking: Tracking,
    /// Its first segment was not a SYN, so the scales of the windows are unknown.
    pub midstream: bool,
}

const USED: u8 = 0x80;
const IF_BOUND: u8 = 0x10;
/// The bits that say how segments are followed, and their values. With zero sequence numbers must lie in windows.
const TRACKING: u8 = 0x60;
const SLOPPY: u8 = 0x20;
const MIDSTREAM: u8 = 0x40;
const BOTH_ENDS: u8 = 0x60;

impl StateFlags {
    fn byte(self) -> u8 {
        let bit = |is_set: bool, bit| if is_set { bit } else { 0 };
        USED | self.binding as u8
            | (self.translation as u8) << 2
            | bit(self.if_bound, IF_BOUND)
            | match self.tracking {
                Tracking::Strict => bit(self.midstream, MIDSTREAM),
                Tracking::Sloppy => SLOPPY,
                Tracking::BothEnds => BOTH_ENDS,
            }
    }
}

impl HotState {
    /// A free entry.
    pub(super) const FREE: HotState = HotState {
        source: Address(0),
        destination: Address(0),
        source_port: 0,
        destination_port: 0,
        last: 0,
        sent: [0; 2],
        limit: [0; 2],
        window: [0; 2],
        phase_scale: [0; 2],
        protocol: 0,
        flags: 0,
    };

    pub(super) fn new(key: FlowKey, flags: StateFlags, now: u32) -> Self {
        HotState {
            source: key.source,
            destination: key.destination,
            source_port: key.source_port,
            destination_port: key.destination_port,
            last: now,
            protocol: key.protocol,
            flags: flags.byte(),
            ..HotState::FREE
        }
    }

    #[inline(always)]
    pub(crate) fn is_used(&self) -> bool {
        self.flags & USED != 0
    }

    #[inline(always)]
    pub(crate) fn binding(&self) -> PassBinding {
        match self.flags & 3 {
            0 => PassBinding::In,
            1 => PassBinding::Out,
            _ => PassBinding::Both,
        }
    }

    #[inline(always)]
    pub(crate) fn translation(&self) -> StateTranslation {
        match self.flags >> 2 & 3 {
            0 => StateTranslation::No,
            1 => StateTranslation::Source,
            _ => StateTranslation::Destination,
        }
    }

    #[inline(always)]
    pub(crate) fn is_if_bound(&self) -> bool {
        self.flags & IF_BOUND != 0
    }

    /// Whether sequence numbers are compared with windows.
    #[inline(always)]
    pub(super) fn has_windows(&self) -> bool {
        matches!(self.flags & TRACKING, 0 | MIDSTREAM)
    }

    /// Whether the segments of one end may stand for those of the other.
    #[inline(always)]
    pub(super) fn is_sloppy(&self) -> bool {
        self.flags & TRACKING == SLOPPY
    }

    /// Whether the scales of the windows are unknown.
    #[inline(always)]
    pub(super) fn is_midstream(&self) -> bool {
        self.flags & TRACKING == MIDSTREAM
    }

    /// Whether it is of a connection that is established in both directions, whose windows are known.
    #[inline(always)]
    pub(super) fn is_established(&self) -> bool {
        self.phases() == [Phase::Established; 2] && self.flags & TRACKING == 0
    }

    /// Whether it is of a connection that was established in both directions and not reset, whose windows are known.
    pub(super) fn knows_windows(&self) -> bool {
        let is_open = |phase| (Phase::Established..Phase::Reset).contains(&phase);
        self.phases().into_iter().all(is_open) && self.flags & TRACKING == 0
    }

    /// The key of its first packet.
    #[inline(always)]
    pub(crate) fn key(&self) -> FlowKey {
        FlowKey {
            source: self.source,
            destination: self.destination,
            source_port: self.source_port,
            destination_port: self.destination_port,
            protocol: self.protocol,
        }
    }

    /// How far both ends have come: first the one that sent the first packet.
    #[inline(always)]
    pub(crate) fn phases(&self) -> [Phase; 2] {
        [phase(self.phase_scale[0]), phase(self.phase_scale[1])]
    }

    /// Whether it ends for a new state in a full table: a connection whose handshake is not complete, or that was reset.
    #[inline]
    pub(super) fn gives_way(&self) -> bool {
        let [first, second] = self.phases();
        self.protocol == TCP && (first.min(second) < Phase::Established || first.max(second) == Phase::Reset)
    }

    #[inline(always)]
    pub(super) fn peer(&self, number: usize) -> Peer {
        let both = self.phase_scale[number & 1];
        Peer {
            sent: self.sent[number & 1],
            limit: self.limit[number & 1],
            window: self.window[number & 1],
            scale: both >> 4,
            phase: phase(both),
        }
    }

    #[inline(always)]
    pub(super) fn set_peer(&mut self, number: usize, peer: Peer) {
        self.sent[number & 1] = peer.sent;
        self.limit[number & 1] = peer.limit;
        self.window[number & 1] = peer.window;
        let both = &mut self.phase_scale[number & 1];
        *both = *both & SHARED | peer.phase as u8 | peer.scale << 4;
    }

    #[inline(always)]
    pub(super) fn set_phase(&mut self, number: usize, phase: Phase) {
        let both = &mut self.phase_scale[number & 1];
        *both = *both & !PHASE | phase as u8;
    }

    /// Whether something else moves the windows too, which has to be asked first.
    #[inline(always)]
    pub(super) fn is_shared(&self) -> bool {
        self.phase_scale[0] & SHARED != 0
    }

    pub(super) fn set_shared(&mut self, is_shared: bool) {
        self.phase_scale[0] = self.phase_scale[0] & !SHARED | if is_shared { SHARED } else { 0 };
    }

    /// Whether the packet is for this state in its pass, apart from its key.
    #[inline(always)]
    pub(super) fn includes(
        &self,
        packet: &Packet,
        direction: Direction,
        forward: bool,
        cold: &ColdState,
    ) -> bool {
        self.binding().includes(direction, forward)
            && (!self.is_if_bound() || cold.interface == packet.pass.interface)
            && self.is_of_query(packet, forward)
    }

    /// Whether an ICMP query is the one that the state began with, or its answer: other kinds, and requests from the other end,
    /// are flows of their own. Errors come here for the flow that they quote.
    #[inline(always)]
    fn is_of_query(&self, packet: &Packet, forward: bool) -> bool {
        let Transport::Icmp(IcmpMessage { kind, is_query: true, .. }) = packet.transport else { return true };
        let first = self.sent[0] as u8;
        if forward { kind == first } else { Some(kind) == icmp_counterpart(packet.family, first) }
    }

    /// Notes of what kind the first message of ICMP is, where segments of TCP have a sequence number.
    pub(super) fn set_query(&mut self, kind: u8) {
        self.sent[0] = kind.into();
    }
}

#[inline(always)]
fn phase(bits: u8) -> Phase {
    match bits & PHASE {
        0 => Phase::Silent,
        1 => Phase::Opened,
        2 => Phase::Established,
        3 => Phase::Closing,
        4 => Phase::Finished,
        _ => Phase::Reset,
    }
}

impl ColdState {
    pub(super) const FREE: ColdState = ColdState {
        translated: Address(0),
        bytes: 0,
        packets: 0,
        created: 0,
        rule: 0,
        source: 0,
        translated_port: 0,
        interface: 0,
        mark: 0,
        timeouts: 0,
        generation: 0,
    };
}
