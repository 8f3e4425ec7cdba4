//! Chains of nftables, and of iptables on top of it, that forwarded packets pass (linux/netfilter/nf_tables.h).

use std::io;
use std::slice;

use netlink_sys::protocols::NETLINK_NETFILTER;

use super::dump::dump;
use crate::fence;
use crate::netlink::decode::{attributes, find_value, name, nested};

/// NFNL_SUBSYS_NFTABLES and NFT_MSG_GETCHAIN.
const GET_CHAIN: u16 = 10 << 8 | 4;
/// The length of struct nfgenmsg, in which the family comes first.
const HEADER: usize = 4;

const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_POLICY: u16 = 5;
const NFTA_CHAIN_USE: u16 = 6;
const NFTA_HOOK_HOOKNUM: u16 = 1;
const NFTA_HOOK_DEV: u16 = 3;
const NFTA_HOOK_DEVS: u16 = 4;

/// Whose the chains of a fence are.
const FENCE_OWNER: &str = ", of a router with a filter, which runs or was killed";

const NFPROTO_INET: u8 = 1;
const NFPROTO_IPV4: u8 = 2;
const NFPROTO_NETDEV: u8 = 5;
const NFPROTO_IPV6: u8 = 10;

/// The chains of these families and hooks that have rules, or that drop what no rule accepts. A chain at an interface
/// counts only if it is one of these. The fence stops what is forwarded past a filter, so it does not concern a router that
/// has one.
pub fn chains(interfaces: &[String], is_filtered: bool) -> io::Result<Vec<String>> {
    let concerns = |chain: &Chain| chain.concerns(interfaces) && !(is_filtered && chain.is_fence());
    Ok(all()?.iter().filter(|chain| concerns(chain)).map(Chain::describe).collect())
}

/// The ports that a fence is around.
pub fn fenced_ports() -> io::Result<Vec<String>> {
    Ok(all()?.into_iter().filter(Chain::is_fence).map(|chain| chain.name).collect())
}

fn all() -> io::Result<Vec<Chain>> {
    let bodies = dump(NETLINK_NETFILTER, GET_CHAIN, &[0; HEADER])?;
    Ok(bodies.iter().filter_map(|body| Chain::parse(body)).collect())
}

/// A chain at a hook.
#[derive(Debug, PartialEq)]
struct Chain {
    family: u8,
    table: String,
    name: String,
    hook: u32,
    /// The interfaces of a chain that is not for all.
    devices: Vec<String>,
    drops: bool,
    rules: u32,
}

impl Chain {
    /// `None` for a chain that is at no hook: it is reached only by rules of others.
    fn parse(body: &[u8]) -> Option<Chain> {
        let all = attributes(body, HEADER)?;
        let hook: Vec<_> = nested(find_value(&all, NFTA_CHAIN_HOOK)?).collect();
        let hook = hook.into_iter();
        let text = |kind| find_value(&all, kind).map(name).unwrap_or_default();
        let number = |kind| find_value(&all, kind).and_then(big_endian);
        let one = find_value(&hook, NFTA_HOOK_DEV).map(name);
        let several = find_value(&hook, NFTA_HOOK_DEVS).into_iter().flat_map(nested);
        Some(Chain {
            family: *body.first()?,
            table: text(NFTA_CHAIN_TABLE),
            name: text(NFTA_CHAIN_NAME),
            hook: find_value(&hook, NFTA_HOOK_HOOKNUM).and_then(big_endian)?,
            devices: one.into_iter().chain(several.map(|device| name(device.value()))).collect(),
            drops: number(NFTA_CHAIN_POLICY) == Some(0),
            rules: number(NFTA_CHAIN_USE).unwrap_or(0),
        })
    }

    /// Whether it may decide about packets that are forwarded between these interfaces.
    fn concerns(&self, interfaces: &[String]) -> bool {
        let devices = if self.is_fence() { slice::from_ref(&self.name) } else { &self.devices };
        let is_ours = devices.is_empty() || devices.iter().any(|device| interfaces.contains(device));
        self.hook_name().is_some() && is_ours && (self.drops || self.rules > 0)
    }

    /// Whether it is the fence around the port of its name.
    fn is_fence(&self) -> bool {
        self.family == NFPROTO_INET && self.table == fence::TABLE
    }

    /// The name of its hook, if forwarded packets pass it.
    fn hook_name(&self) -> Option<&'static str> {
        match (self.family, self.hook) {
            (NFPROTO_IPV4 | NFPROTO_IPV6 | NFPROTO_INET, 0) => Some("prerouting"),
            (NFPROTO_IPV4 | NFPROTO_IPV6 | NFPROTO_INET, 2) => Some("forward"),
            (NFPROTO_IPV4 | NFPROTO_IPV6 | NFPROTO_INET, 4) => Some("postrouting"),
            (NFPROTO_NETDEV, 0) | (NFPROTO_INET, 5) => Some("ingress"),
            (NFPROTO_NETDEV, 1) => Some("egress"),
            _ => None,
        }
    }

    /// The same text while the chain is there, whatever rules it has.
    fn describe(&self) -> String {
        let family = match self.family {
            NFPROTO_INET => "inet",
            NFPROTO_IPV4 => "ip",
            NFPROTO_IPV6 => "ip6",
            _ => "netdev",
        };
        let Chain { table, name, .. } = self;
        let hook = self.hook_name().unwrap_or_default();
        let policy = if self.drops { ", policy drop" } else { "" };
        let owner = if self.is_fence() { FENCE_OWNER } else { "" };
        format!("nftables, table {family} {table}, chain {name} (hook {hook}{policy}){owner}")
    }
}

fn big_endian(value: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(value.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = [&(4 + value.len() as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn chain(family: u8, hook: u32, device: Option<&str>, (drops, rules): (bool, u32)) -> Vec<u8> {
        let device = device.map(|name| attribute(NFTA_HOOK_DEV, &[name.as_bytes(), &[0]].concat()));
        let hook = [attribute(NFTA_HOOK_HOOKNUM, &hook.to_be_bytes()), device.unwrap_or_default()].concat();
        let body = [
            attribute(NFTA_CHAIN_TABLE, b"filter\0"),
            attribute(NFTA_CHAIN_NAME, b"all\0"),
            attribute(NFTA_CHAIN_HOOK, &hook),
            attribute(NFTA_CHAIN_POLICY, &u32::from(!drops).to_be_bytes()),
            attribute(NFTA_CHAIN_USE, &rules.to_be_bytes()),
        ];
        [vec![family, 0, 0, 0], body.concat()].concat()
    }

    fn concerns(body: &[u8]) -> bool {
        Chain::parse(body).unwrap().concerns(&["eth1".into(), "eth2".into()])
    }

    #[test]
    fn chains_that_forwarded_packets_pass_concern_the_router() {
        assert!(concerns(&chain(NFPROTO_INET, 2, None, (false, 1))));
        assert!(concerns(&chain(NFPROTO_IPV4, 4, None, (true, 0))));
        assert!(!concerns(&chain(NFPROTO_IPV6, 2, None, (false, 0))), "it lets everything pass");
        assert!(!concerns(&chain(NFPROTO_INET, 1, None, (true, 9))), "input");
        assert!(!concerns(&chain(7, 2, None, (true, 9))), "a bridge");
        assert!(concerns(&chain(NFPROTO_NETDEV, 0, Some("eth2"), (false, 1))));
        assert!(!concerns(&chain(NFPROTO_NETDEV, 0, Some("eth3"), (false, 1))));
        let described = Chain::parse(&chain(NFPROTO_INET, 2, None, (true, 3))).unwrap().describe();
        assert_eq!(described, "nftables, table inet filter, chain all (hook forward, policy drop)");
    }

    #[test]
    fn a_chain_without_a_hook_or_cut_off_is_none() {
        let whole = chain(NFPROTO_INET, 2, None, (true, 3));
        assert_eq!(Chain::parse(&[1, 0, 0, 0]), None);
        assert!((0..whole.len()).all(|len| Chain::parse(&whole[..len]).is_none_or(|chain| chain.rules <= 3)));
    }
}
