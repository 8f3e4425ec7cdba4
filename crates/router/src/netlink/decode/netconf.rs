//! Settings of links, which `netlink-packet-route` does not have: `struct netconfmsg`, 4 bytes with its padding, then
//! attributes. Only the setting `forwarding` is read.

use fullview_table::Family;

use crate::netlink::event::{ALL_LINKS, ControlEvent};
use crate::netlink::uapi;

use super::attribute::{attributes, find_u32};

const HEADER: usize = 4;

/// Settings for all links, or for new ones, have negative numbers. The kernel reports IPv4 links one by one whatever
/// the setting for all says; it forwards no IPv6 at all unless the setting for all links says so, whatever those of
/// single links say (`ip6_forward`).
pub(super) fn forwarding(body: &[u8]) -> Option<ControlEvent> {
    let attributes = attributes(body, HEADER)?;
    let family = if body.first() == Some(&uapi::AF_INET) { Family::Inet } else { Family::Inet6 };
    let link = match find_u32(&attributes, uapi::NETCONFA_IFINDEX)? {
        uapi::NETCONFA_IFINDEX_ALL if family == Family::Inet6 => ALL_LINKS,
        link => Some(link).filter(|link| *link <= i32::MAX as u32)?,
    };
    Some(ControlEvent::Forwarding(link, family, find_u32(&attributes, uapi::NETCONFA_FORWARDING)? != 0))
}
