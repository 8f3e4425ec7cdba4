//! A dump under way, and what the kernel answers.

use netlink_packet_core::{DoneBuffer, ErrorBuffer};
use rustc_hash::FxHashSet;

use super::messages::{decoded, part};
use super::statistics::Statistics;
use crate::mirror::Mirror;
use crate::netlink::decode::Messages;
use crate::netlink::event::{ControlEvent, DumpPart, Placement};
use crate::netlink::request::refused;
use crate::netlink::socket::SocketError;
use crate::netlink::uapi;

/// A dump under way.
pub(super) struct Dump {
    pub part: DumpPart,
    pub sequence: u32,
    /// It has to be repeated: something changed under it, or messages were lost meanwhile.
    pub is_void: bool,
    /// IPv6 routes changed under their dump, which may lack some and have others twice.
    pub is_shifted: bool,
    /// The next-hop objects that went meanwhile.
    pub gone_objects: FxHashSet<u32>,
}

impl Dump {
    pub fn new(part: DumpPart, sequence: u32) -> Dump {
        Dump { part, sequence, is_void: false, is_shifted: false, gone_objects: FxHashSet::default() }
    }
}

/// Applies a piece of a dump; returns whether it was the last. A kernel without IPv6 answers a request for its routes with those
/// of IPv4 (`rtnetlink_rcv_msg` in net/core/rtnetlink.c): they belong to another part.
pub(super) fn apply_answers(
    bytes: &[u8],
    dump: &mut Dump,
    mirror: &mut Mirror,
    statistics: &mut Statistics,
) -> Result<bool, SocketError> {
    let mut done = false;
    for message in Messages(bytes).filter(|message| message.sequence_number() == dump.sequence) {
        dump.is_void |= message.flags() & uapi::NLM_F_DUMP_INTR != 0;
        match message.message_type() {
            uapi::NLMSG_DONE => {
                let code = DoneBuffer::new_checked(message.payload()).map_or(0, |end| end.code());
                (done, dump.is_void) = (true, dump.is_void | (code < 0));
            }
            uapi::NLMSG_ERROR => {
                let code = ErrorBuffer::new_checked(message.payload()).ok().and_then(|error| error.code());
                refused(code.map_or(0, i32::from), dump.part)?;
                done = true;
            }
            uapi::NLMSG_OVERRUN => dump.is_void = true,
            _ => match decoded(&message, statistics).filter(|event| part(event) == dump.part) {
                Some(ControlEvent::Route(route, _)) => {
                    mirror.apply(ControlEvent::Route(route, Placement::Listed))
                }
                event => event.into_iter().for_each(|event| mirror.apply(event)),
            },
        }
    }
    Ok(done)
}
