//! Rules of policy routing.

use fullview_table::Family;

use super::attribute::{Attributes, u8_at, u32_at};
use crate::kernel::event::{Leads, Rule};
use crate::kernel::uapi;

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
        leads: leads(body, attributes, inverts)?,
        name: name(body)?,
    }))
}

/// Where all packets of its interfaces go, if that is so.
fn leads(body: &[u8], attributes: Attributes<'_>, inverts: bool) -> Option<Leads> {
    // Lengths of destination and source, TOS, action.
    let [to, from, tos, action] = [1, 2, 3, 7].map(|at| u8_at(body, at));
    let is_plain = [to?, from?, tos?, action?] == [0, 0, 0, uapi::FR_ACT_TO_TBL];
    if inverts || !is_plain || attributes.into_iter().any(|(kind, value)| selects(kind, value)) {
        return Some(Leads::Elsewhere);
    }
    if attributes.get(uapi::FRA_L3MDEV).is_some_and(|value| value != [0]) {
        return Some(Leads::ToVrf);
    }
    let short = u8_at(body, 4)?.into();
    Some(Leads::To(attributes.u32(uapi::FRA_TABLE).unwrap_or(short)))
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
fn name(body: &[u8]) -> Option<Vec<u8>> {
    let flags = u32_at(body, 8)? & uapi::FIB_RULE_INVERT;
    Some([body.get(..8)?, &flags.to_ne_bytes(), body.get(HEADER..)?].concat())
}
