//! Rules of policy routing.

use fullview_plane::policy::{RulePorts, RulePrefix, RuleTransport};
use fullview_table::Family;
use netlink_packet_core::{Nla, Parseable};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleHeader, RulePortRange};

use super::attribute::{Attribute, Attributes, attributes, find_u32, find_value, ip, name};
use crate::netlink::event::{Rule, RuleSelector, RuleTarget};
use crate::netlink::uapi;

/// `struct fib_rule_hdr` is 12 bytes, the last four of them flags.
const HEADER: usize = 12;
const BEFORE_FLAGS: usize = 8;

/// `None` within for a rule of another family.
pub fn rule(body: &[u8]) -> Option<Option<Rule>> {
    let header = RuleHeader::parse(body).ok()?;
    let attributes = attributes(body, HEADER)?;
    let family = match header.family {
        AddressFamily::Inet => Family::Inet,
        AddressFamily::Inet6 => Family::Inet6,
        _ => return Some(None),
    };
    Some(Some(Rule {
        family,
        priority: find_u32(&attributes, uapi::FRA_PRIORITY).unwrap_or(0),
        selector: selector(&header, &attributes)?,
        target: target(&header, &attributes),
        identity: identity(body, &header)?,
    }))
}

fn inverts(header: &RuleHeader) -> bool {
    header.flags.contains(RuleFlags::Invert)
}

/// `None` if a prefix has a length but no address.
fn selector<'a>(header: &RuleHeader, attributes: &impl Attributes<'a>) -> Option<RuleSelector> {
    let is_other = |attribute| role(attribute) == AttributeRole::Unknown;
    Some(RuleSelector {
        ingress: find_value(attributes, uapi::FRA_IIFNAME).map(name),
        source: prefix(attributes, uapi::FRA_SRC, header.src_len)?,
        destination: prefix(attributes, uapi::FRA_DST, header.dst_len)?,
        transport: transport(attributes),
        is_marked: is_marked(attributes),
        has_others: header.tos != 0 || attributes.clone().any(is_other),
        inverted: inverts(header),
    })
}

/// `None` within for all addresses.
fn prefix<'a>(attributes: &impl Attributes<'a>, kind: u16, len: u8) -> Option<Option<RulePrefix>> {
    if len == 0 {
        return Some(None);
    }
    let address = ip(find_value(attributes, kind)?)?;
    Some(Some(RulePrefix { address, len }))
}

fn transport<'a>(attributes: &impl Attributes<'a>) -> RuleTransport {
    let mut transport = RuleTransport::default();
    let ports = |RulePortRange { start: first, end: last }| Some(RulePorts { first, last });
    for attribute in attributes.clone() {
        match RuleAttribute::parse(&attribute) {
            Ok(RuleAttribute::IpProtocol(protocol)) => transport.protocol = Some(u8::from(protocol)),
            Ok(RuleAttribute::SourcePortRange(range)) => transport.source = ports(range),
            Ok(RuleAttribute::DestinationPortRange(range)) => transport.destination = ports(range),
            _ => {}
        }
    }
    transport
}

/// Whether packets need a mark. Without a mask all bits of a mark count.
fn is_marked<'a>(attributes: &impl Attributes<'a>) -> bool {
    let mark = find_u32(attributes, uapi::FRA_FWMARK).unwrap_or(0);
    mark & find_u32(attributes, uapi::FRA_FWMASK).unwrap_or(u32::MAX) != 0
}

fn target<'a>(header: &RuleHeader, attributes: &impl Attributes<'a>) -> RuleTarget {
    if attributes.clone().any(|attribute| role(attribute) == AttributeRole::Unknown) {
        return RuleTarget::Other;
    }
    let suppresses = find_u32(attributes, uapi::FRA_SUPPRESS_PREFIXLEN) == Some(0);
    let selects_by_vrf = find_value(attributes, uapi::FRA_L3MDEV).is_some_and(|value| value != [0]);
    match header.action {
        RuleAction::Nop => RuleTarget::Next,
        // Inverted, it selects packets that have no VRF.
        RuleAction::ToTable if selects_by_vrf && !inverts(header) && !suppresses => RuleTarget::VrfTable,
        _ if selects_by_vrf => RuleTarget::Other,
        RuleAction::Goto => find_u32(attributes, uapi::FRA_GOTO).map_or(RuleTarget::Other, RuleTarget::Goto),
        RuleAction::ToTable => {
            let table = find_u32(attributes, uapi::FRA_TABLE).unwrap_or(header.table.into());
            if suppresses { RuleTarget::SpecificRoutes(table) } else { RuleTarget::Table(table) }
        }
        _ => RuleTarget::Other,
    }
}

/// What an attribute does to a rule.
#[derive(PartialEq, Eq)]
enum AttributeRole {
    /// It keeps no packet from the rule that the selector does not, and the rule from none of its table's
    /// routes.
    Neither,
    /// It is not known here, or may keep the rule from routes of its table.
    Unknown,
}

fn role(attribute: Attribute<'_>) -> AttributeRole {
    const NOTHING: u32 = u32::MAX;
    let is_neither = match RuleAttribute::parse(&attribute) {
        // Only whether default routes count is followed.
        Ok(RuleAttribute::SuppressPrefixLen(value)) => value == NOTHING || value == 0,
        Ok(RuleAttribute::SuppressIfGroup(value)) => value == NOTHING,
        Ok(
            RuleAttribute::Priority(_)
            | RuleAttribute::Table(_)
            | RuleAttribute::Protocol(_)
            | RuleAttribute::Goto(_)
            | RuleAttribute::L3MDev(_)
            | RuleAttribute::Source(_)
            | RuleAttribute::Destination(_)
            | RuleAttribute::FwMark(_)
            | RuleAttribute::FwMask(_)
            | RuleAttribute::IpProtocol(_)
            | RuleAttribute::SourcePortRange(_)
            | RuleAttribute::DestinationPortRange(_),
        ) => true,
        Ok(RuleAttribute::Other(other)) => other.kind() == uapi::FRA_PAD || compares_whole_port(attribute),
        // The library rejects names that are not UTF-8.
        _ => attribute.kind() == uapi::FRA_IIFNAME,
    };
    if is_neither { AttributeRole::Neither } else { AttributeRole::Unknown }
}

/// Whether it is the mask that newer kernels report for each rule with a single port.
fn compares_whole_port(attribute: Attribute<'_>) -> bool {
    let is_mask = matches!(attribute.kind(), uapi::FRA_SPORT_MASK | uapi::FRA_DPORT_MASK);
    is_mask && attribute.value() == u16::MAX.to_ne_bytes()
}

/// All that does not change while the rule exists. Its flags change: they say whether its interfaces exist.
fn identity(body: &[u8], header: &RuleHeader) -> Option<Vec<u8>> {
    let flags = header.flags & RuleFlags::Invert;
    Some([body.get(..BEFORE_FLAGS)?, &flags.bits().to_ne_bytes(), body.get(HEADER..)?].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FR_ACT_TO_TBL: u8 = 1;
    const FIB_RULE_INVERT: u8 = 2;
    const FR_ACT_GOTO: u8 = 2;
    const FR_ACT_NOP: u8 = 3;
    const FR_ACT_UNREACHABLE: u8 = 7;
    const UNHEARD_OF: u16 = 99;

    /// A permanent rule to table 254, with these attributes besides; `header` changes the first 12 bytes.
    fn read(header: impl Fn(&mut [u8]), attributes: &[(u16, &[u8])]) -> Rule {
        let mut body = vec![uapi::AF_INET, 0, 0, 0, 254, 0, 0, FR_ACT_TO_TBL, 1, 0, 0, 0];
        header(&mut body);
        let usual: [(u16, &[u8]); 3] = [
            (uapi::FRA_TABLE, &254u32.to_ne_bytes()),
            (uapi::FRA_SUPPRESS_PREFIXLEN, &[0xff; 4]),
            (uapi::FRA_PRIORITY, &32_766u32.to_ne_bytes()),
        ];
        for (kind, value) in attributes.iter().chain(&usual) {
            body.extend((4 + value.len() as u16).to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        rule(&body).unwrap().unwrap()
    }

    fn target(header: impl Fn(&mut [u8]), attributes: &[(u16, &[u8])]) -> RuleTarget {
        read(header, attributes).target
    }

    #[test]
    fn a_rule_says_what_it_does_with_the_packets_that_it_selects() {
        assert_eq!(target(|_| {}, &[]), RuleTarget::Table(254));
        assert_eq!(target(|_| {}, &[(uapi::FRA_TABLE, &1_000u32.to_ne_bytes())]), RuleTarget::Table(1_000));
        assert_eq!(target(|_| {}, &[(uapi::FRA_L3MDEV, &[1])]), RuleTarget::VrfTable);
        let suppress = |length: u32| target(|_| {}, &[(uapi::FRA_SUPPRESS_PREFIXLEN, &length.to_ne_bytes())]);
        assert_eq!(suppress(0), RuleTarget::SpecificRoutes(254));
        assert_eq!([suppress(8), suppress(u32::MAX)], [RuleTarget::Other, RuleTarget::Table(254)]);
        let of_vrf: [(u16, &[u8]); 2] = [(uapi::FRA_L3MDEV, &[1]), (uapi::FRA_SUPPRESS_PREFIXLEN, &[0; 4])];
        assert_eq!(target(|_| {}, &of_vrf), RuleTarget::Other);
        assert_eq!(target(|_| {}, &[(UNHEARD_OF, &[0; 4])]), RuleTarget::Other);
        let with_action = |action: u8| move |body: &mut [u8]| body[7] = action;
        assert_eq!(target(with_action(FR_ACT_NOP), &[]), RuleTarget::Next);
        assert_eq!(target(with_action(FR_ACT_UNREACHABLE), &[]), RuleTarget::Other);
        let goto: [(u16, &[u8]); 1] = [(uapi::FRA_GOTO, &200u32.to_ne_bytes())];
        assert_eq!(target(with_action(FR_ACT_GOTO), &goto), RuleTarget::Goto(200));
        assert_eq!(target(with_action(FR_ACT_GOTO), &[]), RuleTarget::Other, "without a priority");
        let of_vrf = [goto[0], (uapi::FRA_L3MDEV, &[1])];
        assert_eq!(
            target(with_action(FR_ACT_GOTO), &of_vrf),
            RuleTarget::Other,
            "only packets of a VRF jump"
        );
    }

    #[test]
    fn a_rule_selects_by_addresses_and_marks() {
        let selector = |body: &[(usize, u8)], attributes: &[(u16, &[u8])]| {
            let set = |header: &mut [u8]| body.iter().for_each(|(at, value)| header[*at] = *value);
            read(set, attributes).selector
        };
        let all = RuleSelector::default();
        assert_eq!(selector(&[], &[]), all);
        let prefix = |address: [u8; 4]| Some(RulePrefix { address: address.into(), len: 24 });
        let from = selector(&[(2, 24)], &[(uapi::FRA_SRC, &[10, 0, 1, 0])]);
        assert_eq!(from, RuleSelector { source: prefix([10, 0, 1, 0]), ..all.clone() });
        let to = selector(&[(1, 24), (8, FIB_RULE_INVERT)], &[(uapi::FRA_DST, &[10, 0, 2, 0])]);
        assert_eq!(to, RuleSelector { destination: prefix([10, 0, 2, 0]), inverted: true, ..all.clone() });
        let marked = |mark: u32, mask: u32| {
            let values = [mark, mask].map(u32::to_ne_bytes);
            selector(&[], &[(uapi::FRA_FWMARK, &values[0]), (uapi::FRA_FWMASK, &values[1])]).is_marked
        };
        assert_eq!(
            [(7, 0xff), (0, 0xff), (8, 7), (7, 0)].map(|(mark, mask)| marked(mark, mask)),
            [true, false, false, false]
        );
        assert!(selector(&[], &[(uapi::FRA_FWMARK, &[7; 4])]).is_marked, "without a mask");
        assert!(selector(&[], &[(UNHEARD_OF, &[0; 4])]).has_others);
        assert!(selector(&[(3, 4)], &[]).has_others, "TOS");
        let ports = [1000u16, 2000].map(u16::to_ne_bytes).concat();
        let transport = selector(&[], &[(uapi::FRA_IP_PROTO, &[17]), (uapi::FRA_DPORT_RANGE, &ports)]);
        let destination = Some(RulePorts { first: 1000, last: 2000 });
        let wanted = RuleTransport { protocol: Some(17), source: None, destination };
        assert_eq!(transport, RuleSelector { transport: wanted, ..all });
        let mask = |mask: u16| selector(&[], &[(uapi::FRA_DPORT_MASK, &mask.to_ne_bytes())]).has_others;
        assert_eq!([u16::MAX, 0xff00].map(mask), [false, true]);
        let mut body = vec![uapi::AF_INET, 0, 24, 0, 254, 0, 0, FR_ACT_TO_TBL, 0, 0, 0, 0];
        assert_eq!(rule(&body), None, "a length without an address");
        body[2] = 0;
        assert!(rule(&body).is_some());
    }

    /// The library rejects such a name; the rule still selects only packets of that interface.
    #[test]
    fn an_interface_may_have_any_bytes_in_its_name() {
        let named = read(|_| {}, &[(uapi::FRA_IIFNAME, b"eth\xff\0")]);
        let ingress = Some("eth\u{fffd}".into());
        assert_eq!(named.selector, RuleSelector { ingress, ..RuleSelector::default() });
        assert_eq!(named.target, RuleTarget::Table(254));
    }

    #[test]
    fn a_rule_is_the_same_whether_its_interface_exists_or_not() {
        const DETACHED: u8 = 8;
        let named: [(u16, &[u8]); 1] = [(uapi::FRA_IIFNAME, b"eth1\0")];
        let known = read(|_| {}, &named);
        assert_eq!((known.selector.ingress.as_deref(), known.priority), (Some("eth1"), 32_766));
        assert_eq!(read(|body| body[8] |= DETACHED, &named), known);
        assert_eq!(rule(&[128; 12]), Some(None), "another family");
        assert_eq!(rule(&[2; 11]), None);
    }
}
