//! Rules, one on a line; those of an anchor are indented below it.

use std::fmt::{Display, Formatter, Result, Write};

use crate::address::Family;
use crate::packet::Direction;
use crate::pf::names::{icmp, protocols};
use crate::pf::parse::block::{UNREACHABLE, UNREACHABLE6};
use crate::pf::print::addresses::{from_to, owner};
use crate::pf::print::options::options;
use crate::pf::rule::{AnchorCall, BlockReply, PfAction, PfLog, PfRule, TranslationKind};

impl Display for PfRule {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        nested(out, self, 0)
    }
}

fn nested(out: &mut impl Write, rule: &PfRule, depth: usize) -> Result {
    line(out, rule)?;
    let PfAction::Anchor(AnchorCall { body, .. }) = &rule.action else { return Ok(()) };
    if body.is_empty() {
        return Ok(());
    }
    out.write_str(" {\n")?;
    for rule in body {
        write!(out, "{:width$}", "", width = 2 * (depth + 1))?;
        nested(out, rule, depth + 1)?;
        out.write_char('\n')?;
    }
    write!(out, "{:width$}}}", "", width = 2 * depth)
}

fn line(out: &mut impl Write, rule: &PfRule) -> Result {
    action(out, rule)?;
    out.write_str(match rule.direction {
        None => "",
        Some(Direction::In) => " in",
        Some(Direction::Out) => " out",
    })?;
    log(out, rule.log)?;
    out.write_str(if rule.quick { " quick" } else { "" })?;
    if let Some(interface) = &rule.interface {
        write!(out, " on {interface}")?;
    }
    selection(out, rule)?;
    options(out, rule)?;
    translation(out, rule)
}

fn selection(out: &mut impl Write, rule: &PfRule) -> Result {
    out.write_str(match rule.family {
        None => "",
        Some(Family::Inet) => " inet",
        Some(Family::Inet6) => " inet6",
    })?;
    if let Some(protocol) = rule.protocol {
        match protocols::name(protocol) {
            Some(name) => write!(out, " proto {name}")?,
            None => write!(out, " proto {protocol}")?,
        }
    }
    from_to(out, &rule.from, rule.os.as_deref(), &rule.to, rule.protocol)?;
    if let Some(test) = &rule.options.received_on {
        write!(out, " {}received-on {}", if test.not { "!" } else { "" }, test.name)?;
    }
    owner(out, "user", rule.user)?;
    owner(out, "group", rule.group)
}

fn action(out: &mut impl Write, rule: &PfRule) -> Result {
    match &rule.action {
        PfAction::Pass => out.write_str("pass"),
        PfAction::Match => out.write_str("match"),
        PfAction::Scrub => out.write_str("scrub"),
        PfAction::NoScrub => out.write_str("no scrub"),
        PfAction::Block(reply) => block(out, *reply, rule.family),
        PfAction::Translate { kind, pass } => {
            write!(out, "{}{}", word(*kind), if *pass { " pass" } else { "" })
        }
        PfAction::NoTranslate(kind) => write!(out, "no {}", word(*kind)),
        PfAction::Anchor(call) => anchor(out, call),
    }
}

fn word(kind: TranslationKind) -> &'static str {
    match kind {
        TranslationKind::Nat => "nat",
        TranslationKind::Rdr => "rdr",
        TranslationKind::Binat => "binat",
    }
}

fn anchor(out: &mut impl Write, call: &AnchorCall) -> Result {
    let kind = call.kind.map_or(String::new(), |kind| format!("{}-", word(kind)));
    write!(out, "{kind}anchor")?;
    call.name.as_ref().map_or(Ok(()), |name| write!(out, " \"{name}\""))
}

fn block(out: &mut impl Write, reply: BlockReply, family: Option<Family>) -> Result {
    match reply {
        BlockReply::Drop => out.write_str("block drop"),
        BlockReply::Return => out.write_str("block return"),
        BlockReply::Rst { ttl: 0 } => out.write_str("block return-rst"),
        BlockReply::Rst { ttl } => write!(out, "block return-rst(ttl {ttl})"),
        BlockReply::Icmp { code, code6 } => {
            let code = code_text(code, UNREACHABLE, Family::Inet);
            let code6 = code_text(code6, UNREACHABLE6, Family::Inet6);
            match family {
                Some(Family::Inet) => write!(out, "block return-icmp({code})"),
                Some(Family::Inet6) => write!(out, "block return-icmp6({code6})"),
                None => write!(out, "block return-icmp({code}, {code6})"),
            }
        }
    }
}

fn code_text(code: u8, kind: u8, family: Family) -> String {
    icmp::code_name(code, kind, family).map_or_else(|| code.to_string(), str::to_owned)
}

fn log(out: &mut impl Write, log: Option<PfLog>) -> Result {
    let Some(log) = log else { return Ok(()) };
    let mut parts = Vec::new();
    parts.extend(log.all.then(|| "all".to_owned()));
    parts.extend(log.user.then(|| "user".to_owned()));
    parts.extend((log.to > 0).then(|| format!("to pflog{}", log.to)));
    out.write_str(" log")?;
    if parts.is_empty() { Ok(()) } else { write!(out, " ({})", parts.join(", ")) }
}

fn translation(out: &mut impl Write, rule: &PfRule) -> Result {
    if let PfAction::Translate { .. } = rule.action {
        let pool = rule.nat.as_ref().or(rule.rdr.as_ref());
        return pool.map_or(Ok(()), |pool| write!(out, " -> {pool}"));
    }
    if let Some(pool) = &rule.nat {
        write!(out, " nat-to {pool}")?;
    }
    rule.rdr.as_ref().map_or(Ok(()), |pool| write!(out, " rdr-to {pool}"))
}
