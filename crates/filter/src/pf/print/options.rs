//! What stands after the addresses of a rule.

use std::fmt::{Display, Formatter, Result, Write};

use crate::address::Family;
use crate::pf::names::icmp;
use crate::pf::rule::{
    FlagTest, IcmpTest, InterfaceTest, PfAction, PfRule, Probability, RuleOptions, ScrubOptions,
};
use crate::pf::state_options::StateKeeping;

impl Display for InterfaceTest {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "{}{}", if self.not { "! " } else { "" }, self.name)
    }
}

/// Everything from the TCP flags to the routing table.
pub fn options(out: &mut impl Write, rule: &PfRule) -> Result {
    let options = &rule.options;
    flags(out, rule)?;
    if let Some(test) = &rule.icmp {
        icmp_test(out, test, rule.family)?;
    }
    numbers(out, options)?;
    states(out, rule)?;
    out.write_str(if options.fragment { " fragment" } else { "" })?;
    scrub(out, &options.scrub, &rule.action)?;
    out.write_str(if options.allow_opts { " allow-opts" } else { "" })?;
    if rule.action == PfAction::Scrub {
        reassembly(out, &options.scrub)?;
    }
    marks(out, options)
}

fn flags(out: &mut impl Write, rule: &PfRule) -> Result {
    if rule.flags != FlagTest::ANY {
        return write!(out, " flags {}/{}", letters(rule.flags.set), letters(rule.flags.of));
    }
    let tcp = rule.protocol.is_none_or(|protocol| protocol == crate::packet::protocol::TCP);
    let kept = rule.action == PfAction::Pass && rule.state != StateKeeping::None;
    out.write_str(if tcp && kept && !rule.options.fragment { " flags any" } else { "" })
}

fn letters(flags: u8) -> String {
    let set = FlagTest::LETTERS.chars().enumerate().filter(|(bit, _)| flags & (1 << bit) != 0);
    set.map(|(_, letter)| letter).collect()
}

fn icmp_test(out: &mut impl Write, test: &IcmpTest, family: Option<Family>) -> Result {
    let family = family.unwrap_or(Family::Inet);
    let word = if family == Family::Inet { "icmp-type" } else { "icmp6-type" };
    match icmp::kind_name(test.kind, family) {
        Some(name) => write!(out, " {word} {name}")?,
        None => write!(out, " {word} {}", test.kind)?,
    }
    let Some(code) = test.code else { return Ok(()) };
    match icmp::code_name(code, test.kind, family) {
        Some(name) => write!(out, " code {name}"),
        None => write!(out, " code {code}"),
    }
}

fn numbers(out: &mut impl Write, options: &RuleOptions) -> Result {
    if let Some(tos) = options.tos {
        write!(out, " tos {tos:#04x}")?;
    }
    if let Some(prio) = options.prio {
        write!(out, " prio {prio}")?;
    }
    if let Some(rate) = options.max_packet_rate {
        write!(out, " max-pkt-rate {}/{}", rate.limit, rate.seconds)?;
    }
    if let Some(size) = options.max_packet_size {
        write!(out, " max-pkt-size {size}")?;
    }
    sets(out, options)
}

fn sets(out: &mut impl Write, options: &RuleOptions) -> Result {
    let prio = options.set_prio.map(|(first, second)| match first == second {
        true => format!(" prio {first}"),
        false => format!(" prio({first}, {second})"),
    });
    let tos = options.set_tos.map(|tos| format!(" tos {tos:#04x}"));
    let parts: Vec<String> = prio.into_iter().chain(tos).collect();
    if parts.is_empty() { Ok(()) } else { write!(out, " set ({} )", parts.join(",")) }
}

fn states(out: &mut impl Write, rule: &PfRule) -> Result {
    match &rule.state {
        StateKeeping::None if rule.action == PfAction::Pass => out.write_str(" no state")?,
        StateKeeping::None => {}
        StateKeeping::Keep(_) => out.write_str(" keep state")?,
    }
    if let Some(probability) = rule.options.probability {
        write!(out, " probability {probability}%")?;
    }
    match &rule.state {
        StateKeeping::Keep(options) => write!(out, "{options}"),
        StateKeeping::None => Ok(()),
    }
}

/// In percent, with as many digits as needed, at most six.
impl Display for Probability {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let percent = format!("{:.6}", f64::from(self.0) * 100.0 / (f64::from(u32::MAX) + 1.0));
        out.write_str(percent.trim_end_matches('0').trim_end_matches('.'))
    }
}

fn scrub(out: &mut impl Write, options: &ScrubOptions, action: &PfAction) -> Result {
    let mut parts = Vec::new();
    parts.extend(options.no_df.then(|| "no-df".to_owned()));
    parts.extend(options.random_id.then(|| "random-id".to_owned()));
    parts.extend(options.min_ttl.map(|ttl| format!("min-ttl {ttl}")));
    let is_rule = matches!(action, PfAction::Scrub | PfAction::NoScrub);
    parts.extend((options.reassemble_tcp && !is_rule).then(|| "reassemble tcp".to_owned()));
    parts.extend(options.max_mss.map(|size| format!("max-mss {size}")));
    parts.extend(options.set_tos.map(|tos| format!("set-tos {tos:#04x}")));
    match (parts.is_empty(), is_rule) {
        (true, _) => Ok(()),
        (false, true) => write!(out, " {}", parts.join(" ")),
        (false, false) => write!(out, " scrub ({})", parts.join(" ")),
    }
}

fn reassembly(out: &mut impl Write, options: &ScrubOptions) -> Result {
    out.write_str(if options.reassemble_tcp { " reassemble tcp" } else { "" })?;
    out.write_str(if options.keep_fragments { " fragment no reassemble" } else { " fragment reassemble" })
}

fn marks(out: &mut impl Write, options: &RuleOptions) -> Result {
    for label in &options.labels {
        write!(out, " label \"{label}\"")?;
    }
    if let Some(id) = options.ridentifier {
        write!(out, " ridentifier {id}")?;
    }
    out.write_str(if options.once { " once" } else { "" })?;
    if let Some(tag) = &options.tag {
        write!(out, " tag {tag}")?;
    }
    if let Some(test) = &options.tagged {
        write!(out, "{} tagged {}", if test.not { " !" } else { "" }, test.name)?;
    }
    options.rtable.map_or(Ok(()), |table| write!(out, " rtable {table}"))
}
