//! Rules of policy routing.

use fullview_table::Family;
use netlink_packet_core::{Nla, Parseable};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleHeader};

use super::attribute::{Attribute, Attributes, attributes, find_u32, find_value, name};
use crate::netlink::event::{Rule, RuleTarget};
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
    let inverts = header.flags.contains(RuleFlags::Invert);
    Some(Some(Rule {
        family,
        priority: find_u32(&attributes, uapi::FRA_PRIORITY).unwrap_or(0),
        interface: find_value(&attributes, uapi::FRA_IIFNAME).map(name).filter(|_| !inverts),
        target: target(&header, &attributes),
        identity: identity(body, &header)?,
    }))
}

/// The table for all packets of the rule's interfaces, if the rule is that simple.
fn target<'a>(header: &RuleHeader, attributes: &impl Attributes<'a>) -> RuleTarget {
    let is_plain = [header.dst_len, header.src_len, header.tos] == [0; 3]
        && header.action == RuleAction::ToTable
        && !header.flags.contains(RuleFlags::Invert);
    if !is_plain || attributes.clone().any(selects) {
        return RuleTarget::Other;
    }
    if find_value(attributes, uapi::FRA_L3MDEV).is_some_and(|value| value != [0]) {
        return RuleTarget::VrfTable;
    }
    RuleTarget::Table(find_u32(attributes, uapi::FRA_TABLE).unwrap_or(header.table.into()))
}

/// Whether an attribute may keep packets from the rule, or the rule from its table's routes: every attribute, unless it
/// is known not to.
fn selects(attribute: Attribute<'_>) -> bool {
    const NOTHING: u32 = u32::MAX;
    match RuleAttribute::parse(&attribute) {
        Ok(RuleAttribute::SuppressPrefixLen(len)) => len != NOTHING,
        Ok(RuleAttribute::SuppressIfGroup(group)) => group != NOTHING,
        Ok(
            RuleAttribute::Priority(_)
            | RuleAttribute::Table(_)
            | RuleAttribute::Protocol(_)
            | RuleAttribute::L3MDev(_),
        ) => false,
        Ok(RuleAttribute::Other(other)) => other.kind() != uapi::FRA_PAD,
        // The library rejects names that are not UTF-8.
        _ => attribute.kind() != uapi::FRA_IIFNAME,
    }
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
    const FRA_SUPPRESS_PREFIXLEN: u16 = 14;

    /// A permanent rule to table 254, with these attributes besides; `header` changes the first 12 bytes.
    fn read(header: impl Fn(&mut [u8]), attributes: &[(u16, &[u8])]) -> Rule {
        let mut body = vec![uapi::AF_INET, 0, 0, 0, 254, 0, 0, FR_ACT_TO_TBL, 1, 0, 0, 0];
        header(&mut body);
        let usual: [(u16, &[u8]); 3] = [
            (uapi::FRA_TABLE, &254u32.to_ne_bytes()),
            (FRA_SUPPRESS_PREFIXLEN, &[0xff; 4]),
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
    fn only_a_rule_for_all_packets_has_a_table() {
        const FWMARK: u16 = 10;
        assert_eq!(target(|_| {}, &[]), RuleTarget::Table(254));
        assert_eq!(target(|_| {}, &[(uapi::FRA_TABLE, &1_000u32.to_ne_bytes())]), RuleTarget::Table(1_000));
        assert_eq!(target(|_| {}, &[(uapi::FRA_L3MDEV, &[1])]), RuleTarget::VrfTable);
        assert_eq!(target(|_| {}, &[(FWMARK, &[7; 4])]), RuleTarget::Other);
        assert_eq!(target(|_| {}, &[(FRA_SUPPRESS_PREFIXLEN, &[0; 4])]), RuleTarget::Other);
        // Lengths of destination and source, TOS, an action other than a lookup, and an inverted selection.
        for (at, value) in [(1, 24), (2, 24), (3, 4), (7, 8), (8, FIB_RULE_INVERT)] {
            let differs = |body: &mut [u8]| body[at] = value;
            assert_eq!(target(differs, &[]), RuleTarget::Other, "byte {at}");
        }
    }

    /// The library rejects such a name; the rule still selects only packets of that interface.
    #[test]
    fn an_interface_may_have_any_bytes_in_its_name() {
        let named = read(|_| {}, &[(uapi::FRA_IIFNAME, b"eth\xff\0")]);
        assert_eq!((named.interface.as_deref(), named.target), (Some("eth\u{fffd}"), RuleTarget::Table(254)));
    }

    #[test]
    fn a_rule_is_the_same_whether_its_interface_exists_or_not() {
        const DETACHED: u8 = 8;
        let named: [(u16, &[u8]); 1] = [(uapi::FRA_IIFNAME, b"eth1\0")];
        let known = read(|_| {}, &named);
        assert_eq!((known.interface.as_deref(), known.priority), (Some("eth1"), 32_766));
        assert_eq!(read(|body| body[8] |= DETACHED, &named), known);
        let inverted = read(|body| body[8] |= FIB_RULE_INVERT, &named);
        assert_eq!(inverted.interface, None, "it selects packets of other interfaces");
        assert_eq!(rule(&[128; 12]), Some(None), "another family");
        assert_eq!(rule(&[2; 11]), None);
    }
}
