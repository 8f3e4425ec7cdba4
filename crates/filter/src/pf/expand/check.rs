//! Contradictions in a rule.

use crate::address::Family;
use crate::packet::protocol::{ICMP, ICMP6, SCTP, TCP, UDP};
use crate::pf::address::{NumberTest, PfPeer};
use crate::pf::error::{PfError, PfResult};
use crate::pf::pool::PoolPorts;
use crate::pf::rule::{BlockReply, FlagTest, PfAction, PfRule, TranslationKind};
use crate::pf::syntax::RuleSyntax;

/// What a rule says before its lists are expanded.
pub fn written(rule: &RuleSyntax) -> PfResult<()> {
    let tcp = rule.protocols.is_empty() || rule.protocols.contains(&TCP);
    let asks_flags = rule.options.flags.is_some_and(|flags| flags != FlagTest::ANY);
    let problem = match tcp {
        false if asks_flags => "flags only apply to tcp",
        false if !rule.oses.is_empty() => "OS fingerprinting only applies to tcp",
        _ => return Ok(()),
    };
    Err(PfError::invalid(&rule.position, problem, "write 'proto tcp'"))
}

pub fn expanded(rule: &PfRule) -> PfResult<()> {
    let found = match rule.action {
        PfAction::Translate { kind: TranslationKind::Rdr, .. }
        | PfAction::NoTranslate(TranslationKind::Rdr) => redirection(rule),
        PfAction::Translate { .. } | PfAction::NoTranslate(_) => None,
        _ => ports(rule).or_else(|| icmp(rule)).or_else(|| options(rule)),
    };
    match found {
        Some((problem, fix)) => Err(PfError::invalid(&rule.position, problem, fix)),
        None => Ok(()),
    }
}

/// A problem, and how to fix it.
type Problem = (&'static str, &'static str);

fn has_ports(rule: &PfRule) -> bool {
    rule.from.port.is_some() || rule.to.port.is_some()
}

fn is_port_protocol(protocol: Option<u8>) -> bool {
    matches!(protocol, Some(TCP | UDP | SCTP))
}

fn ports(rule: &PfRule) -> Option<Problem> {
    let allowed = !has_ports(rule) || is_port_protocol(rule.protocol);
    (!allowed).then_some((
        "port only applies to tcp/udp/sctp",
        "write 'proto tcp', 'proto udp', 'proto sctp' or 'proto { tcp, udp }'",
    ))
}

fn icmp(rule: &PfRule) -> Option<Problem> {
    match (rule.protocol, rule.family) {
        (Some(ICMP), Some(Family::Inet6)) => {
            Some(("proto icmp doesn't match address family inet6", "write 'proto icmp6'"))
        }
        (Some(ICMP6), Some(Family::Inet)) => {
            Some(("proto icmp6 doesn't match address family inet", "write 'proto icmp'"))
        }
        (_, None) if rule.icmp.is_some() => {
            Some(("must indicate address family with icmp-type/code", "write 'inet' or 'inet6'"))
        }
        _ => None,
    }
}

fn options(rule: &PfRule) -> Option<Problem> {
    let header = has_ports(rule) || rule.flags.of != 0 || rule.icmp.is_some();
    if rule.options.allow_opts && rule.action != PfAction::Pass {
        Some(("allow-opts can only be specified for pass rules", "leave it out"))
    } else if rule.options.fragment && header {
        Some(("fragments can be filtered only on IP header fields", "leave out ports, flags and icmp-type"))
    } else if matches!(rule.action, PfAction::Block(BlockReply::Rst { .. })) && rule.protocol != Some(TCP) {
        Some(("return-rst can only be applied to TCP rules", "write 'proto tcp'"))
    } else if rule.options.once && matches!(rule.action, PfAction::Match) {
        Some(("'once' only applies to block/pass rules", "leave it out"))
    } else {
        None
    }
}

fn redirection(rule: &PfRule) -> Option<Problem> {
    let translates_ports = rule.rdr.as_ref().is_some_and(|pool| pool.ports != PoolPorts::Default);
    if (has_ports(rule) || translates_ports) && !is_port_protocol(rule.protocol) {
        return Some(("ports only apply to tcp/udp", "write 'proto tcp' or 'proto udp'"));
    }
    let PfPeer { port, .. } = rule.to;
    let fits = matches!(port, None | Some(NumberTest::Equal(_) | NumberTest::Range(..)));
    (!fits).then_some(("invalid port operator for rdr destination port", "write one port or first:last"))
}
