//! How rules keep states.

use crate::pf::error::PfResult;
use crate::pf::lower::support;
use crate::pf::lower::timeouts::with;
use crate::pf::rule::PfRule;
use crate::pf::state_options::{PfStateOptions, SourceTrack, StateBinding, StateKeeping};
use crate::rule::{FlowMask, FlowName, SourceLimits, StateOptions, Tracking};
use crate::state::Timeouts;

/// The state that a rule makes. Its timeouts are found among those of other rules, or added to them.
pub fn state(rule: &PfRule, timeouts: &mut Vec<Timeouts>) -> PfResult<Option<StateOptions>> {
    let StateKeeping::Keep(options) = &rule.state else { return Ok(None) };
    support::states(rule, options)?;
    Ok(Some(StateOptions {
        flow: FlowName::default(),
        tracking: if options.sloppy { Tracking::Sloppy } else { Tracking::Strict },
        if_bound: options.binding == Some(StateBinding::Interface),
        timeouts: timeouts_of(options, timeouts),
        max_states: options.max,
        source: options.source_track.map(|track| source(options, track)),
    }))
}

fn timeouts_of(options: &PfStateOptions, timeouts: &mut Vec<Timeouts>) -> u16 {
    let own = with(&timeouts[0], options.timeouts.iter().map(|(timeout, seconds)| (*timeout, *seconds)));
    let known = timeouts.iter().position(|known| *known == own);
    let index = known.unwrap_or_else(|| {
        timeouts.push(own);
        timeouts.len() - 1
    });
    index as u16
}

fn source(options: &PfStateOptions, track: SourceTrack) -> SourceLimits {
    SourceLimits {
        mask: FlowMask::SOURCE,
        per_rule: track == SourceTrack::Rule,
        max_nodes: options.max_src_nodes,
        max_states: options.max_src_states,
        max_connections: options.max_src_conn,
        rate: options.max_src_conn_rate.map(|rate| (rate.limit, rate.seconds)),
        overload: None,
    }
}
