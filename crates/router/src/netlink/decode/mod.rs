//! From bytes to events. What cannot be parsed is skipped attribute by attribute; a message is an error only if its
//! very subject is damaged.

use netlink_packet_core::NetlinkBuffer;

use super::event::{ControlEvent, LinkNeighbor, Placement};
use super::uapi;

mod attribute;
mod link;
mod netconf;
mod nexthop;
mod route;
mod rule;

pub use attribute::Messages;
pub(crate) use attribute::{attributes, find_value, name, nested};
pub(crate) use link::link;

/// A message lacks what it is about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("netlink: a message of type {kind} and {len} bytes without {missing}")]
pub struct Malformed {
    /// The message's type (`RTM_`).
    pub kind: u16,
    /// The length of the message without its header.
    pub len: usize,
    /// What it lacks.
    pub missing: &'static str,
}

/// The event that a message reports; `None` for messages that do not matter to a router.
pub fn event(message: &NetlinkBuffer<&[u8]>) -> Result<Option<ControlEvent>, Malformed> {
    let (kind, body) = (message.message_type(), message.payload());
    let family = body.first().copied().unwrap_or(uapi::AF_UNSPEC);
    let is_ours = matches!(family, uapi::AF_INET | uapi::AF_INET6);
    match kind {
        // A bridge reports its ports as links of its own family: when it removes one there, the link itself stays.
        uapi::RTM_NEWLINK | uapi::RTM_DELLINK if family != uapi::AF_UNSPEC => Ok(None),
        uapi::RTM_NEWNEIGH | uapi::RTM_DELNEIGH | uapi::RTM_NEWROUTE | uapi::RTM_DELROUTE if !is_ours => {
            Ok(None)
        }
        uapi::RTM_NEWNETCONF => Ok(netconf::forwarding(body)),
        uapi::RTM_NEWLINK | uapi::RTM_DELLINK => decoded(message, "a link", link_event),
        uapi::RTM_NEWADDR | uapi::RTM_DELADDR => decoded(message, "an address", address_event),
        uapi::RTM_NEWNEIGH | uapi::RTM_DELNEIGH => decoded(message, "a neighbour", neighbor_event),
        uapi::RTM_NEWROUTE | uapi::RTM_DELROUTE => decoded(message, "a prefix", route_event),
        uapi::RTM_NEWNEXTHOP | uapi::RTM_DELNEXTHOP => decoded(message, "an id", nexthop_event),
        uapi::RTM_NEWRULE | uapi::RTM_DELRULE => decoded(message, "a rule", rule_event),
        _ => Ok(None),
    }
}

/// A body without its subject is `None`, and a subject that does not matter here is `None` within.
type Decoder = fn(&NetlinkBuffer<&[u8]>) -> Option<Option<ControlEvent>>;

fn decoded(
    message: &NetlinkBuffer<&[u8]>,
    missing: &'static str,
    decode: Decoder,
) -> Result<Option<ControlEvent>, Malformed> {
    let (kind, len) = (message.message_type(), message.payload().len());
    decode(message).ok_or(Malformed { kind, len, missing })
}

fn link_event(message: &NetlinkBuffer<&[u8]>) -> Option<Option<ControlEvent>> {
    Some(Some(match message.message_type() {
        uapi::RTM_NEWLINK => ControlEvent::Link(link(message.payload())?),
        _ => ControlEvent::LinkRemoved(link::link_index(message.payload())?),
    }))
}

fn address_event(message: &NetlinkBuffer<&[u8]>) -> Option<Option<ControlEvent>> {
    let (link, address) = link::address(message.payload())?;
    Some(Some(match message.message_type() {
        uapi::RTM_NEWADDR => ControlEvent::Address(link, address),
        _ => ControlEvent::AddressRemoved(link, address),
    }))
}

fn neighbor_event(message: &NetlinkBuffer<&[u8]>) -> Option<Option<ControlEvent>> {
    let event = |neighbor: LinkNeighbor| match message.message_type() {
        uapi::RTM_NEWNEIGH => ControlEvent::Neighbor(neighbor),
        _ => ControlEvent::NeighborRemoved(neighbor.link, neighbor.address),
    };
    Some(link::neighbor(message.payload())?.map(event))
}

fn route_event(message: &NetlinkBuffer<&[u8]>) -> Option<Option<ControlEvent>> {
    let event = |route| match message.message_type() {
        uapi::RTM_NEWROUTE => ControlEvent::Route(route, placement(message.flags())),
        _ => ControlEvent::RouteRemoved(route),
    };
    Some(route::route(message.payload())?.map(event))
}

fn nexthop_event(message: &NetlinkBuffer<&[u8]>) -> Option<Option<ControlEvent>> {
    Some(Some(match message.message_type() {
        uapi::RTM_NEWNEXTHOP => {
            let (id, object) = nexthop::object(message.payload())?;
            ControlEvent::NextHop(id, object)
        }
        _ => ControlEvent::NextHopRemoved(nexthop::id(message.payload())?),
    }))
}

fn rule_event(message: &NetlinkBuffer<&[u8]>) -> Option<Option<ControlEvent>> {
    let event = |rule| match message.message_type() {
        uapi::RTM_NEWRULE => ControlEvent::Rule(rule),
        _ => ControlEvent::RuleRemoved(rule),
    };
    Some(rule::rule(message.payload())?.map(event))
}

fn placement(flags: u16) -> Placement {
    match flags {
        _ if flags & uapi::NLM_F_REPLACE != 0 => Placement::Replace,
        _ if flags & uapi::NLM_F_APPEND != 0 => Placement::Last,
        _ => Placement::First,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Just, Strategy, any};
    use proptest::{prop_oneof, proptest};

    use super::*;

    const KINDS: [u16; 13] = [16, 17, 20, 21, 24, 25, 28, 29, 32, 33, 80, 104, 105];

    /// Attributes of any types and lengths, some of them within others.
    fn attributes() -> impl Strategy<Value = Vec<u8>> {
        let attribute = |value: Vec<u8>, kind: u16| {
            let mut bytes =
                [&(4 + value.len() as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), &value].concat();
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let leaf = (vec(any::<u8>(), 0..24), 0..64u16).prop_map(move |(value, kind)| attribute(value, kind));
        let list = |item| vec(item, 0..6).prop_map(|items: Vec<Vec<u8>>| items.concat());
        leaf.prop_recursive(3, 24, 6, move |inner| {
            let nested = (list(inner.clone().boxed()), 0..64u16);
            prop_oneof![nested.prop_map(move |(value, kind)| attribute(value, kind)), inner]
        })
    }

    fn message(kind: usize, body: &[u8]) -> Vec<u8> {
        let len = 16 + body.len() as u32;
        [&len.to_ne_bytes()[..], &KINDS[kind].to_ne_bytes(), &[0; 10], body].concat()
    }

    proptest! {
        #[test]
        fn no_message_panics(
            kind in 0..KINDS.len(),
            family in prop_oneof![Just(0u8), Just(2), Just(10), any::<u8>()],
            header in vec(any::<u8>(), 15),
            words in 1..=4usize,
            items in vec(attributes(), 0..8),
            rest in vec(any::<u8>(), 0..40),
        ) {
            let body = [&[family][..], &header[..words * 4 - 1], &items.concat(), &rest].concat();
            let bytes = message(kind, &body);
            for message in Messages(&bytes).chain(Messages(&rest)) {
                let _ = event(&message);
            }
        }
    }
}
