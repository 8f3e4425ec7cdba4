//! What can be read but not enforced.

use crate::pf::config::{LoadedAnchor, PfConfig, PfLimit, PfOption, PfRules, PfSetting, Syncookies};
use crate::pf::error::{PfError, PfResult, Position};
use crate::pf::pool::PfPool;
use crate::pf::rule::{BlockReply, PfAction, PfRule, ScrubOptions};
use crate::pf::state_options::{PfStateOptions, StateTimeout};

const SOCKETS: &str = "forwarded packets belong to no socket of this host: match addresses and ports";
const ROUTES: &str =
    "the filter does not know routes: name the addresses, or use the router's own source check";
const REWRITES: &str = "the filter changes addresses and ports only: leave it out";
const FINGERPRINTS: &str = "the filter has no fingerprints: match addresses and ports";
const RATES: &str = "limit connections with max-src-conn-rate";
const IN_RULE: &str = "write a rule of translation: nat on, rdr on or binat on";

/// So many states, sources or fragmented packets a router may have.
const MOST_ENTRIES: u32 = 1 << 24;

/// Options of the whole rule set. That of how many states fit does not count where something else says that.
pub fn options(config: &PfConfig, limits_states: bool) -> PfResult<()> {
    for setting in &config.settings {
        let PfSetting::Option { position, option } = setting else { continue };
        limit(position, option, limits_states)?;
        let word = match option {
            PfOption::Reassemble { on: true, .. } => "set reassemble yes",
            PfOption::Syncookies(Syncookies::Always | Syncookies::Adaptive { .. }) => "set syncookies",
            _ => continue,
        };
        return Err(PfError::refused(position, word, "packets pass one by one, unchanged: leave it out"));
    }
    match config.rules.scrub.iter().find(|rule| rule.action == PfAction::Scrub) {
        Some(rule) => Err(PfError::refused(&rule.position, "scrub", REWRITES)),
        None => Ok(()),
    }
}

/// The memory of a limit is taken when the router starts, so there is none without a limit, which is what 0 means to FreeBSD.
fn limit(position: &Position, option: &PfOption, limits_states: bool) -> PfResult<()> {
    let (name, most) = match option {
        PfOption::Limit(PfLimit::States, most) if limits_states => ("states", *most),
        PfOption::Limit(PfLimit::SourceNodes, most) => ("src-nodes", *most),
        PfOption::Limit(PfLimit::Fragments, most) => ("frags", *most),
        _ => return Ok(()),
    };
    let problem = match most {
        0 => "leaves no room",
        1..=MOST_ENTRIES => return Ok(()),
        _ => "takes too much memory",
    };
    let problem = format!("'set limit {name} {most}' {problem}");
    Err(PfError::invalid(position, problem, format!("1 to {MOST_ENTRIES} are possible")))
}

/// Files of anchors: they may have filter rules and tables.
pub fn loaded(anchors: &[LoadedAnchor]) -> PfResult<()> {
    let more = |anchor: &&LoadedAnchor| {
        let PfRules { scrub, nat, rdr, binat, filter: _ } = &anchor.config.rules;
        let nested = !anchor.config.loaded.is_empty();
        nested || [scrub, nat, rdr, binat].iter().any(|rules| !rules.is_empty())
    };
    match anchors.iter().find(more) {
        Some(anchor) => {
            let instead =
                "a file of an anchor has tables and filter rules: write other rules into the main file";
            Err(PfError::refused(&anchor.position, "load anchor", instead))
        }
        None => Ok(()),
    }
}

/// A filter rule or a rule of translation.
pub fn rule(rule: &PfRule) -> PfResult<()> {
    let options = &rule.options;
    let rewrites = options.scrub != ScrubOptions::default();
    let in_rule =
        !matches!(rule.action, PfAction::Translate { .. }) && (rule.nat.is_some() || rule.rdr.is_some());
    let found = [
        (rule.os.is_some(), "os", FINGERPRINTS),
        (rule.user.is_some(), "user", SOCKETS),
        (rule.group.is_some(), "group", SOCKETS),
        (options.max_packet_rate.is_some(), "max-pkt-rate", RATES),
        (options.prio.is_some(), "prio", "the filter sees no VLAN priority: match tos"),
        (options.set_prio.is_some(), "set prio", REWRITES),
        (options.set_tos.is_some(), "set tos", REWRITES),
        (rewrites, "scrub", REWRITES),
        (options.rtable.is_some(), "rtable", ROUTES),
        (options.once, "once", "a rule stays until the rule set changes: leave it out"),
        (in_rule, "nat-to, rdr-to or binat-to", IN_RULE),
        (
            matches!(rule.action, PfAction::Block(BlockReply::Rst { ttl: 1.. })),
            "ttl",
            "write return-rst alone",
        ),
    ];
    refuse(rule, &found)
}

/// The pool of a translation.
pub fn pool(rule: &PfRule, pool: &PfPool) -> PfResult<()> {
    let found = [
        (pool.map_e.is_some(), "map-e-portset", "write a range of ports"),
        (pool.sticky, "sticky-address", "a source always gets the same address with source-hash: write that"),
    ];
    refuse(rule, &found)
}

/// How a rule keeps states.
pub fn states(rule: &PfRule, options: &PfStateOptions) -> PfResult<()> {
    let adaptive = [(StateTimeout::AdaptiveStart, 6), (StateTimeout::AdaptiveEnd, 12)];
    let usual = |factor: u32| options.max.map(|max| (max / 10).saturating_mul(factor));
    let own = |(timeout, factor): &(StateTimeout, u32)| {
        options.timeouts.get(timeout).is_some_and(|states| Some(*states) != usual(*factor))
    };
    let found = [
        (options.overload.is_some(), "overload", "no sources are added to tables: leave it out"),
        (options.allow_related, "allow-related", "each connection needs a rule of its own"),
        (adaptive.iter().any(own), "adaptive.start and adaptive.end", "write 'set timeout', for all rules"),
    ];
    refuse(rule, &found)
}

fn refuse(rule: &PfRule, found: &[(bool, &str, &'static str)]) -> PfResult<()> {
    match found.iter().find(|(present, _, _)| *present) {
        Some((_, word, instead)) => Err(PfError::refused(&rule.position, word, instead)),
        None => Ok(()),
    }
}

/// The rule needs routes to decide.
pub fn needs_routes(rule: &PfRule, word: &str) -> PfError {
    PfError::refused(&rule.position, word, ROUTES)
}
