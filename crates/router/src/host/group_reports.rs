//! Reports of the groups that the router is a member of (MLD version 2, RFC 3810; to queriers of version 1, RFC 2710). A switch
//! that snoops them passes on frames to a group only to members, and neighbour solicitations are such frames.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use super::interfaces::{Interfaces, subnet_router_anycast};
use super::output::Output;
use super::packet;
use fullview_plane::interface::Interface;
use fullview_plane::wire::ethernet::EtherType;
use fullview_plane::wire::extension::kind;
use fullview_plane::wire::ipv4::protocol;
use fullview_plane::wire::ndp;

/// The types of messages.
pub(super) const QUERY: u8 = 130;
const REPORT_1: u8 = 131;
const REPORT_2: u8 = 143;
/// The hop limit of all messages.
pub(super) const HOP_LIMIT: u8 = 1;
/// The lengths of queries: of version 1, and of version 2 at least.
const QUERY_1_LEN: usize = 24;
const QUERY_2_LEN: usize = 28;
/// Reports of version 2 go to all routers that understand them.
const TO_ROUTERS: u128 = 0xff02 << 112 | 0x16;
/// A hop-by-hop header with the option by which routers look at the packet (RFC 2711).
const ROUTER_ALERT: [u8; 8] = [protocol::ICMPV6, 0, 5, 2, 0, 0, 1, 0];
/// The longest time until a report is repeated that answers no query.
const UNSOLICITED_INTERVAL: Duration = Duration::from_secs(1);
/// Records that fit into a packet on every link.
const MOST_RECORDS: usize = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportKind {
    Version1,
    /// The groups are as they were.
    Current,
    /// Some are new.
    Changed,
}

struct PendingReport {
    interface: u16,
    kind: ReportKind,
    due: Duration,
}

/// The reports of all links that are to be sent.
#[derive(Default)]
pub(super) struct GroupReports(Vec<PendingReport>);

impl GroupReports {
    pub fn next_deadline(&self) -> Option<Duration> {
        self.0.iter().map(|pending| pending.due).min()
    }

    /// Reports the groups of an interface that has new ones, and reports them again, because one report may be lost.
    pub fn begin(&mut self, now: Duration, number: u16, interface: &Interface) {
        let kind = ReportKind::Changed;
        self.0.retain(|pending| (pending.interface, pending.kind) != (number, kind));
        let half = UNSOLICITED_INTERVAL / 2;
        let again = now + half + random_delay(now, interface, half);
        self.0.extend([now, again].map(|due| PendingReport { interface: number, kind, due }));
    }

    /// Has a query answered within the time that it gives.
    pub fn receive_query(&mut self, now: Duration, (number, interface): (u16, &Interface), message: &[u8]) {
        let Some(query) = GroupQuery::parse(message).filter(|query| query.is_about(interface)) else {
            return;
        };
        let due = now + random_delay(now, interface, query.most);
        let is_same =
            |pending: &&mut PendingReport| (pending.interface, pending.kind) == (number, query.answer);
        match self.0.iter_mut().find(is_same) {
            Some(pending) => pending.due = pending.due.min(due),
            None => self.0.push(PendingReport { interface: number, kind: query.answer, due }),
        }
    }

    /// Sends the reports that are due.
    pub fn tick(&mut self, now: Duration, interfaces: &Interfaces, out: &mut Output) {
        for PendingReport { interface, kind, .. } in self.0.extract_if(.., |pending| pending.due <= now) {
            let from = interfaces.link_local_of(interface).unwrap_or(Ipv6Addr::UNSPECIFIED);
            interfaces.get(interface).into_iter().for_each(|interface| send(interface, from, kind, out));
        }
    }
}

/// What a querier asks.
struct GroupQuery {
    answer: ReportKind,
    /// The longest time until the answer.
    most: Duration,
    /// 0 for all groups.
    group: u128,
}

impl GroupQuery {
    fn parse(message: &[u8]) -> Option<GroupQuery> {
        let code = u16::from_be_bytes(message.get(4..6)?.try_into().ok()?);
        let group = u128::from_be_bytes(message.get(8..24)?.try_into().ok()?);
        let (answer, millis) = match message.len() {
            QUERY_1_LEN => (ReportKind::Version1, code.into()),
            len if len >= QUERY_2_LEN => (ReportKind::Current, decoded(code)),
            _ => return None,
        };
        Some(GroupQuery { answer, most: Duration::from_millis(millis), group })
    }

    fn is_about(&self, interface: &Interface) -> bool {
        self.group == 0 || groups(interface).any(|group| group == self.group)
    }
}

/// The milliseconds that the code of a query stands for (RFC 3810, section 5.1.3).
fn decoded(code: u16) -> u64 {
    let (mantissa, exponent) = (u64::from(code & 0xfff | 0x1000), code >> 12 & 7);
    if code < 0x8000 { code.into() } else { mantissa << (exponent + 3) }
}

/// A time up to `most` that differs between stations, so that they do not all answer at once.
fn random_delay(now: Duration, interface: &Interface, most: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    (now, interface.mac.0).hash(&mut hasher);
    Duration::from_millis(hasher.finish() % (most.as_millis() as u64 + 1))
}

/// The groups that the router is a member of on a link and reports: all routers, and the solicited-node groups of its own
/// addresses and of its networks' anycast addresses. One may be there several times. Nodes do not report that of all nodes.
pub(super) fn groups(interface: &Interface) -> impl Iterator<Item = u128> {
    let of_address = |(ip, len): (Ipv6Addr, u8)| {
        [ip, subnet_router_anycast(ip, len)].map(|ip| ndp::solicited_node(ip.to_bits()))
    };
    let own = interface.addresses.iter().filter_map(|own| match own.ip {
        IpAddr::V6(ip) => Some((ip, own.len)),
        IpAddr::V4(_) => None,
    });
    iter::once(ndp::ALL_ROUTERS).chain(own.flat_map(of_address))
}

fn send(interface: &Interface, from: Ipv6Addr, kind: ReportKind, out: &mut Output) {
    const IS_EXCLUDE: u8 = 2;
    const TO_EXCLUDE: u8 = 4;
    let groups: Vec<u128> = groups(interface).collect::<BTreeSet<_>>().into_iter().collect();
    let mut send_all = |record| {
        groups.chunks(MOST_RECORDS).for_each(|groups| {
            send_message(interface, (from, TO_ROUTERS), report(record, groups), out);
        });
    };
    match kind {
        ReportKind::Current => send_all(IS_EXCLUDE),
        ReportKind::Changed => send_all(TO_EXCLUDE),
        ReportKind::Version1 => groups.iter().for_each(|group| {
            let message = [&[REPORT_1, 0, 0, 0, 0, 0, 0, 0][..], &group.to_be_bytes()].concat();
            send_message(interface, (from, *group), message, out);
        }),
    }
}

/// A report of version 2, whose records exclude no source.
fn report(record: u8, groups: &[u128]) -> Vec<u8> {
    let [high, low] = (groups.len() as u16).to_be_bytes();
    let mut message = vec![REPORT_2, 0, 0, 0, 0, 0, high, low];
    groups.iter().for_each(|group| message.extend([&[record, 0, 0, 0][..], &group.to_be_bytes()].concat()));
    message
}

fn send_message(interface: &Interface, (from, to): (Ipv6Addr, u128), message: Vec<u8>, out: &mut Output) {
    let addresses = (from, to.into());
    let payload = [&ROUTER_ALERT[..], &packet::with_checksum6(addresses, message)].concat();
    let packet = packet::with_hop_limit(packet::inet6(addresses, kind::HOP_BY_HOP, 0, &payload), HOP_LIMIT);
    out.send(interface, ndp::group_mac(to), EtherType::IPV6, &packet);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_times_are_written_as_numbers_with_an_exponent() {
        assert_eq!([0, 1000, 0x7fff].map(decoded), [0, 1000, 32_767]);
        assert_eq!([0x8000, 0x8001, 0xffff].map(decoded), [32_768, 32_776, 8_387_584]);
    }
}
