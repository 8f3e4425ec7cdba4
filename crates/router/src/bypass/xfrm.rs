//! Policies of IPsec for packets that are forwarded (linux/xfrm.h).

use std::io;

use netlink_sys::protocols::NETLINK_XFRM;

use super::dump::dump;

const XFRM_MSG_GETPOLICY: u16 = 0x15;
/// The length of struct xfrm_userpolicy_id.
const REQUEST: usize = 64;
/// Where struct xfrm_userpolicy_info has the direction: behind a selector, two sets of limits, a priority and a number.
const DIRECTION: usize = 56 + 64 + 32 + 4 + 4;

/// Text for the operator, if there are policies that forwarded packets meet.
pub fn policies() -> io::Result<Option<&'static str>> {
    let bodies = dump(NETLINK_XFRM, XFRM_MSG_GETPOLICY, &[0; REQUEST])?;
    let concerns = bodies.iter().any(|body| concerns(body));
    Ok(concerns.then_some("IPsec, policies in the direction fwd or out (`ip xfrm policy`)"))
}

fn concerns(body: &[u8]) -> bool {
    const OUT: u8 = 1;
    const FORWARD: u8 = 2;
    matches!(body.get(DIRECTION), Some(&(OUT | FORWARD)))
}
