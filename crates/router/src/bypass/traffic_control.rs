//! Filters and queueing disciplines of `tc` at the router's interfaces (linux/rtnetlink.h, pkt_sched.h).

use std::io;

use fullview_plane::port::link::Link;
use netlink_sys::protocols::NETLINK_ROUTE;

use super::dump::dump;
use crate::netlink::decode::{attributes, find_value, name};

const RTM_GETQDISC: u16 = 38;
const RTM_GETTFILTER: u16 = 46;
/// The length of struct tcmsg: family, interface, handle, parent, info.
const HEADER: usize = 20;
const TCA_KIND: u16 = 1;
/// TC_H_CLSACT with TC_H_MIN_INGRESS, and with TC_H_MIN_EGRESS.
const DIRECTIONS: [(&str, u32); 2] = [("ingress", 0xFFFF_FFF2), ("egress", 0xFFFF_FFF3)];

/// Disciplines that neither limit the rate nor drop, delay or reorder on purpose: packets lose nothing without them.
const PLAIN: [&str; 11] = [
    "noqueue",
    "pfifo",
    "pfifo_fast",
    "bfifo",
    "mq",
    "fq",
    "fq_codel",
    "sfq",
    "pfifo_head_drop",
    "ingress",
    "clsact",
];

/// Disciplines that have filters for what comes in or leaves.
const FILTERED: [&str; 2] = ["ingress", "clsact"];

/// The disciplines that shape what leaves by these interfaces.
pub fn shapers(interfaces: &[String]) -> io::Result<Vec<String>> {
    let all = dump(NETLINK_ROUTE, RTM_GETQDISC, &[0; HEADER])?;
    let mut found: Vec<String> =
        interfaces.iter().flat_map(|interface| shapers_of(interface, &all)).collect();
    found.dedup();
    Ok(found)
}

fn shapers_of(interface: &str, all: &[Vec<u8>]) -> Vec<String> {
    let own = number(interface).map_or(Vec::new(), |link| kinds(all, link));
    let shaping = own.into_iter().filter(|kind| !PLAIN.contains(&kind.as_str()));
    shaping.map(|kind| format!("tc, interface {interface}: queueing discipline {kind}")).collect()
}

/// The directions of these interfaces that have filters. They are asked for only where a discipline can have some: a running router
/// looks again and again, perhaps at a thousand VLANs.
pub fn filters(interfaces: &[String]) -> io::Result<Vec<String>> {
    let all = dump(NETLINK_ROUTE, RTM_GETQDISC, &[0; HEADER])?;
    let mut found = Vec::new();
    for interface in interfaces {
        let may_have_some =
            |link: &i32| kinds(&all, *link).iter().any(|kind| FILTERED.contains(&kind.as_str()));
        let Some(link) = number(interface).filter(may_have_some) else { continue };
        for (direction, parent) in DIRECTIONS {
            if !dump(NETLINK_ROUTE, RTM_GETTFILTER, &request(link, parent))?.is_empty() {
                found.push(format!("tc, interface {interface}: filters at {direction}"));
            }
        }
    }
    Ok(found)
}

fn request(link: i32, parent: u32) -> Vec<u8> {
    [&[0; 4][..], &link.to_ne_bytes(), &[0; 4], &parent.to_ne_bytes(), &[0; 4]].concat()
}

/// The kinds of the disciplines at a link.
fn kinds(all: &[Vec<u8>], link: i32) -> Vec<String> {
    let own = all.iter().filter(|body| body.get(4..8) == Some(&link.to_ne_bytes()));
    own.filter_map(|body| Some(name(find_value(&attributes(body, HEADER)?, TCA_KIND)?))).collect()
}

/// The kernel's number of an interface; `None` while it does not exist.
fn number(interface: &str) -> Option<i32> {
    i32::try_from(Link::named(interface).ok()?.index()).ok()
}
