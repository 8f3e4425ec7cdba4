//! Policies of IPsec for packets that are forwarded (linux/xfrm.h).

use std::io;

use netlink_sys::protocols::NETLINK_XFRM;

use super::dump::dump;

const XFRM_MSG_GETPOLICY: u16 = 0x15;
/// The length of struct xfrm_userpolicy_id.
const REQUEST: usize = 64;
/// Where struct xfrm_userpolicy_info has the direction: behind a selector, two sets of limits, a priority and a number.
const DIRECTION: usize = 56 + 64 + 32 + 4 + 4;

/// A sentence with the number of policies that forwarded packets meet as they come in again or leave.
pub fn policies() -> io::Result<Option<String>> {
    let bodies = dump(NETLINK_XFRM, XFRM_MSG_GETPOLICY, &[0; REQUEST])?;
    let number = bodies.iter().filter(|body| concerns(body)).count();
    Ok((number > 0)
        .then(|| format!("IPsec: {number} policies of `ip xfrm policy` in the direction fwd or out")))
}

fn concerns(body: &[u8]) -> bool {
    const OUT: u8 = 1;
    const FORWARD: u8 = 2;
    matches!(body.get(DIRECTION), Some(&(OUT | FORWARD)))
}
