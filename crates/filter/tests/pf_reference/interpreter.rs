//! pf's rules as pf.conf(5) describes them, without any preparation: each rule is read for each packet.

use std::net::IpAddr;

use fullview_filter::address::Family;
use fullview_filter::interfaces::Interfaces;
use fullview_filter::packet::{Fragment, Packet, Transport};
use fullview_filter::pf::address::{InterfacePart, NumberTest, PfAddress, PfHost, PfPeer};
use fullview_filter::pf::config::{PfConfig, PfSetting, TableDefinition};
use fullview_filter::pf::rule::{BlockReply, InterfaceTest, PfAction, PfRule};
use fullview_filter::pf::state_options::StateKeeping;
use fullview_filter::verdict::Reject;
use ipnet::IpNet;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Pass,
    Drop,
    Reject(Reject),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    pub answer: Answer,
    pub tag: Option<String>,
    pub keeps_state: bool,
}

pub struct Interpreter<'a> {
    config: &'a PfConfig,
    interfaces: Interfaces,
}

/// What is known while the rules are read.
#[derive(Default)]
struct Walk<'a> {
    last: Option<&'a PfRule>,
    tag: Option<String>,
    /// A quick rule has matched.
    ended: bool,
}

impl<'a> Interpreter<'a> {
    pub fn new(config: &'a PfConfig, interfaces: Interfaces) -> Self {
        Interpreter { config, interfaces }
    }

    pub fn decide(&self, packet: &Packet) -> Expected {
        let mut walk = Walk::default();
        self.walk(&self.config.rules.filter, packet, &mut walk);
        let Some(rule) = walk.last else {
            let answer = if packet.has_options { Answer::Drop } else { Answer::Pass };
            return Expected { answer, tag: walk.tag, keeps_state: false };
        };
        let may_open = match packet.fragment {
            _ if is_error(packet) => false,
            Fragment::Whole => true,
            Fragment::First { .. } => !name_fragments(&self.config.rules.filter),
            Fragment::Later { .. } => false,
        };
        let keeps_state = rule.state != StateKeeping::None && may_open;
        Expected { answer: verdict(rule, packet), tag: walk.tag, keeps_state }
    }

    fn walk(&self, rules: &'a [PfRule], packet: &Packet, walk: &mut Walk<'a>) {
        for rule in rules {
            if walk.ended {
                return;
            }
            if self.matches(rule, packet, walk.tag.as_deref()) {
                self.apply(rule, packet, walk);
            }
        }
    }

    fn apply(&self, rule: &'a PfRule, packet: &Packet, walk: &mut Walk<'a>) {
        if let Some(tag) = &rule.options.tag {
            walk.tag = Some(tag.clone());
        }
        match &rule.action {
            PfAction::Anchor(call) => {
                let before = walk.last.take();
                self.walk(&call.body, packet, walk);
                walk.ended |= rule.quick && walk.last.is_some();
                walk.last = walk.last.or(before);
            }
            PfAction::Match => walk.ended = rule.quick,
            _ => {
                walk.last = Some(rule);
                walk.ended = rule.quick;
            }
        }
    }

    fn matches(&self, rule: &PfRule, packet: &Packet, tag: Option<&str>) -> bool {
        let options = &rule.options;
        rule.direction.is_none_or(|direction| packet.pass.direction == direction)
            && rule.interface.as_ref().is_none_or(|test| self.on(test, packet.pass.interface))
            && options.received_on.as_ref().is_none_or(|test| self.on(test, packet.pass.received_on))
            && rule.family.is_none_or(|family| packet.family == family)
            && rule.protocol.is_none_or(|protocol| packet.protocol == protocol)
            && self.peer(&rule.from, packet.source.into(), packet.source_port, packet)
            && self.peer(&rule.to, packet.destination.into(), packet.destination_port, packet)
            && header(rule, packet)
            && options.tagged.as_ref().is_none_or(|test| (tag == Some(test.name.as_str())) != test.not)
    }

    fn on(&self, test: &InterfaceTest, number: u16) -> bool {
        let is = match test.name.as_str() {
            "any" => number == 1 || number == 2,
            name => self.interfaces.0.iter().any(|one| {
                one.number == number
                    && (one.name == name || one.name.trim_end_matches(char::is_numeric) == name)
            }),
        };
        is != test.not
    }

    fn peer(&self, peer: &PfPeer, address: IpAddr, port: u16, packet: &Packet) -> bool {
        let port_fits =
            peer.port.is_none_or(|test| !is_later(packet) && has_port(packet) && number_fits(test, port));
        self.host(&peer.host, address) && port_fits
    }

    fn host(&self, host: &PfHost, address: IpAddr) -> bool {
        let is = match &host.address {
            PfAddress::Any => true,
            PfAddress::Prefix(prefix) => prefix.contains(&address),
            PfAddress::Range(first, last) => {
                first.is_ipv4() == address.is_ipv4() && *first <= address && address <= *last
            }
            PfAddress::Table(name) => self.in_table(name, address),
            PfAddress::Dynamic(dynamic) => {
                let interface = self.interfaces.0.iter().find(|one| one.name == dynamic.interface);
                let all = interface
                    .into_iter()
                    .flat_map(|one| &one.addresses)
                    .map(|(one, length)| (IpAddr::from(*one), *length));
                let first = |(one, _): &(IpAddr, u8)| {
                    let before = interface.unwrap().addresses.iter().map(|(other, _)| IpAddr::from(*other));
                    before.into_iter().find(|other| other.is_ipv4() == one.is_ipv4()) == Some(*one)
                };
                let chosen: Vec<_> = all.filter(|one| !dynamic.modifiers.first_only || first(one)).collect();
                let whole = dynamic.modifiers.part == Some(InterfacePart::Network);
                chosen.iter().any(|(one, length)| {
                    let longest = if one.is_ipv4() { 32 } else { 128 };
                    let length = dynamic.length.unwrap_or(if whole { *length } else { longest }).min(longest);
                    IpNet::new(*one, length).unwrap().contains(&address)
                })
            }
            PfAddress::NoRoute | PfAddress::UrpfFailed => panic!("needs routes"),
        };
        is != host.not
    }

    /// The longest prefix with the address decides.
    fn in_table(&self, name: &str, address: IpAddr) -> bool {
        let table = self.config.settings.iter().find_map(|setting| match setting {
            PfSetting::Table(table) if table.name == name => Some(table),
            _ => None,
        });
        let entries = table.into_iter().flat_map(TableDefinition::entries);
        let longest = entries
            .filter(|entry| entry.prefix.contains(&address))
            .max_by_key(|entry| entry.prefix.prefix_len());
        longest.is_some_and(|entry| !entry.not)
    }
}

/// Whether any of the rules is about fragments.
fn name_fragments(rules: &[PfRule]) -> bool {
    rules.iter().any(|rule| {
        rule.options.fragment || matches!(&rule.action, PfAction::Anchor(call) if name_fragments(&call.body))
    })
}

/// Whether it is an ICMP error, which belongs to the flow that it quotes.
fn is_error(packet: &Packet) -> bool {
    match (packet.transport, packet.family) {
        (Transport::Icmp(message), Family::Inet) => [3, 4, 5, 11, 12].contains(&message.kind),
        (Transport::Icmp(message), Family::Inet6) => (1..=4).contains(&message.kind),
        _ => false,
    }
}

fn is_later(packet: &Packet) -> bool {
    matches!(packet.fragment, Fragment::Later { .. })
}

fn has_port(packet: &Packet) -> bool {
    matches!(packet.protocol, 6 | 17)
}

fn number_fits(test: NumberTest<u16>, number: u16) -> bool {
    match test {
        NumberTest::Equal(one) => number == one,
        NumberTest::NotEqual(one) => number != one,
        NumberTest::Less(one) => number < one,
        NumberTest::LessOrEqual(one) => number <= one,
        NumberTest::Greater(one) => number > one,
        NumberTest::GreaterOrEqual(one) => number >= one,
        NumberTest::Range(first, last) => first <= number && number <= last,
        NumberTest::Inside(low, high) => low < number && number < high,
        NumberTest::Outside(low, high) => number < low || number > high,
    }
}

fn header(rule: &PfRule, packet: &Packet) -> bool {
    let flags = match packet.transport {
        _ if packet.protocol != 6 || rule.flags.of == 0 => true,
        Transport::Tcp(segment) => segment.flags & rule.flags.of == rule.flags.set,
        _ => false,
    };
    let icmp = rule.icmp.is_none_or(|test| match packet.transport {
        Transport::Icmp(message) => {
            message.kind == test.kind && test.code.is_none_or(|code| message.code == code)
        }
        _ => false,
    });
    let options = &rule.options;
    flags
        && icmp
        && options.tos.is_none_or(|tos| packet.tos & 0xfc == tos)
        && options.max_packet_size.is_none_or(|size| packet.length <= size)
        && (!options.fragment || packet.fragment != Fragment::Whole)
}

fn verdict(rule: &PfRule, packet: &Packet) -> Answer {
    let PfAction::Block(reply) = rule.action else {
        let options = packet.has_options && !rule.options.allow_opts;
        return if options { Answer::Drop } else { Answer::Pass };
    };
    match (packet.transport, reply) {
        (_, BlockReply::Drop) => Answer::Drop,
        _ if is_later(packet) => Answer::Drop,
        (Transport::Icmp(_), _) => Answer::Drop,
        (Transport::Tcp(segment), BlockReply::Return | BlockReply::Rst { .. }) => {
            if segment.flags & 4 == 0 {
                Answer::Reject(Reject::TcpReset)
            } else {
                Answer::Drop
            }
        }
        (_, BlockReply::Return) => unreachable_message(packet, 3, 4),
        (_, BlockReply::Rst { .. }) => Answer::Drop,
        (_, BlockReply::Icmp { code, code6 }) => unreachable_message(packet, code, code6),
    }
}

fn unreachable_message(packet: &Packet, code: u8, code6: u8) -> Answer {
    Answer::Reject(match packet.family {
        Family::Inet => Reject::Icmp { code, mtu: 0 },
        Family::Inet6 => Reject::Icmp6 { code: code6 },
    })
}
