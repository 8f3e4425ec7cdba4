//! Rules of policy routing.

use fullview_table::Family;

use super::attribute::{Attributes, u8_at, u32_at};
use crate::netlink::event::{Rule, RuleTarget};
use crate::netlink::uapi;

/// `struct fib_rule_hdr` is 12 bytes, the last four of them flags.
const HEADER: usize = 12;

/// `None` if it is of another family than ours.
pub fn rule(body: &[u8]) -> Option<Option<Rule>> {
    let attributes = Attributes(body.get(HEADER..)?);
    let family = match u8_at(body, 0)? {
        uapi::AF_INET => Family::Inet,
        uapi::AF_INET6 => Family::Inet6,
        _ => return Some(None),
    };
    let inverts = u32_at(body, 8)? & uapi::FIB_RULE_INVERT != 0;
    let text = |value: &[u8]| {
        let name = value.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    };
    Some(Some(Rule {
        family,
        priority: attributes.u32(uapi::FRA_PRIORITY).unwrap_or(0),
        interface: attributes.get(uapi::FRA_IIFNAME).map(text).filter(|_| !inverts),
        target: target(body, attributes, inverts)?,
        identity: identity(body)?,
    }))
}

/// Where all packets of its interfaces go, if that is so.
fn target(body: &[u8], attributes: Attributes<'_>, inverts: bool) -> Option<RuleTarget> {
    // Lengths of destination and source, TOS, action.
    let [to, from, tos, action] = [1, 2, 3, 7].map(|at| u8_at(body, at));
    let is_plain = [to?, from?, tos?, action?] == [0, 0, 0, uapi::FR_ACT_TO_TBL];
    if inverts || !is_plain || attributes.into_iter().any(|(kind, value)| selects(kind, value)) {
        return Some(RuleTarget::Other);
    }
    if attributes.get(uapi::FRA_L3MDEV).is_some_and(|value| value != [0]) {
        return Some(RuleTarget::VrfTable);
    }
    let short = u8_at(body, 4)?.into();
    Some(RuleTarget::Table(attributes.u32(uapi::FRA_TABLE).unwrap_or(short)))
}

/// Whether an attribute may keep packets from a rule, or a rule from its table's routes: any that is not known not to.
fn selects(kind: u16, value: &[u8]) -> bool {
    const NOTHING: [u8; 4] = [0xff; 4];
    match kind {
        uapi::FRA_SUPPRESS_PREFIXLEN | uapi::FRA_SUPPRESS_IFGROUP => value != NOTHING,
        uapi::FRA_IIFNAME
        | uapi::FRA_PRIORITY
        | uapi::FRA_TABLE
        | uapi::FRA_PROTOCOL
        | uapi::FRA_PAD
        | uapi::FRA_L3MDEV => false,
        _ => true,
    }
}

/// All that does not change while the rule is there: whether its interfaces are there stands in its flags.
fn identity(body: &[u8]) -> Option<Vec<u8>> {
    let flags = u32_at(body, 8)? & uapi::FIB_RULE_INVERT;
    Some([body.get(..8)?, &flags.to_ne_bytes(), body.get(HEADER..)?].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule to table 254 that is there for good, with these attributes besides; `header` changes the first 12 bytes.
    fn read(header: impl Fn(&mut [u8]), attributes: &[(u16, &[u8])]) -> Rule {
        let mut body = vec![uapi::AF_INET, 0, 0, 0, 254, 0, 0, uapi::FR_ACT_TO_TBL, 1, 0, 0, 0];
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
    fn only_what_takes_all_packets_leads_to_a_table() {
        const FWMARK: u16 = 10;
        assert_eq!(target(|_| {}, &[]), RuleTarget::Table(254));
        assert_eq!(target(|_| {}, &[(uapi::FRA_TABLE, &1_000u32.to_ne_bytes())]), RuleTarget::Table(1_000));
        assert_eq!(target(|_| {}, &[(uapi::FRA_L3MDEV, &[1])]), RuleTarget::VrfTable);
        assert_eq!(target(|_| {}, &[(FWMARK, &[7; 4])]), RuleTarget::Other);
        assert_eq!(target(|_| {}, &[(uapi::FRA_SUPPRESS_PREFIXLEN, &[0; 4])]), RuleTarget::Other);
        // Lengths of destination and source, TOS, an action other than a table, and everything but that.
        for (at, value) in [(1, 24), (2, 24), (3, 4), (7, 8), (8, uapi::FIB_RULE_INVERT as u8)] {
            let differs = |body: &mut [u8]| body[at] = value;
            assert_eq!(target(differs, &[]), RuleTarget::Other, "byte {at}");
        }
    }

    #[test]
    fn a_rule_is_the_same_whether_its_interface_is_there_or_not() {
        const DETACHED: u8 = 8;
        let named: [(u16, &[u8]); 1] = [(uapi::FRA_IIFNAME, b"eth1\0")];
        let known = read(|_| {}, &named);
        assert_eq!((known.interface.as_deref(), known.priority), (Some("eth1"), 32_766));
        assert_eq!(read(|body| body[8] |= DETACHED, &named), known);
        let all_but = read(|body| body[8] |= uapi::FIB_RULE_INVERT as u8, &named);
        assert_eq!(all_but.interface, None, "it is for packets of other interfaces");
        assert_eq!(rule(&[128; 12]), Some(None), "of another family");
        assert_eq!(rule(&[2; 11]), None);
    }
}
