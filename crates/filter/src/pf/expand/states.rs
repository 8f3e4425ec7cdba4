//! The defaults of states.

use crate::pf::error::{PfError, PfResult, Position};
use crate::pf::policy::Policy;
use crate::pf::rule::{FlagTest, PfAction};
use crate::pf::state_options::{PfStateOptions, SourceTrack, StateBinding, StateKeeping, StateTimeout};
use crate::pf::syntax::{RuleSyntax, StateSyntax};

/// What a rule keeps: a rule that passes keeps state unless it says otherwise.
pub fn keeping(rule: &RuleSyntax, action: &PfAction, policy: &Policy) -> PfResult<StateKeeping> {
    let kept = match (&rule.options.state, action) {
        (None, PfAction::Pass) => policy.state_defaults.clone().unwrap_or_default(),
        (Some(StateSyntax::Keep(options)), PfAction::Pass) => options.clone(),
        (Some(StateSyntax::Keep(_)), PfAction::Anchor(_)) => {
            return Err(PfError::invalid(
                &rule.position,
                "cannot specify state handling on anchors",
                "leave it out",
            ));
        }
        (Some(StateSyntax::Keep(_)), _) => {
            let problem = "keep state is great, but only for pass rules";
            return Err(PfError::invalid(&rule.position, problem, "leave it out"));
        }
        _ => return Ok(StateKeeping::None),
    };
    complete(kept, policy, &rule.position).map(|options| StateKeeping::Keep(Box::new(options)))
}

fn complete(mut options: PfStateOptions, policy: &Policy, position: &Position) -> PfResult<PfStateOptions> {
    check(&options, position)?;
    options.binding =
        Some(options.binding.unwrap_or(policy.binding)).filter(|one| *one == StateBinding::Interface);
    adaptive(&mut options);
    track_sources(&mut options);
    options.timeouts.retain(|_, seconds| *seconds > 0);
    Ok(options)
}

/// A limit of states shortens timeouts from 60 % of it on.
fn adaptive(options: &mut PfStateOptions) {
    let ends = [StateTimeout::AdaptiveStart, StateTimeout::AdaptiveEnd];
    let set = ends.iter().any(|end| options.timeouts.contains_key(end));
    if let (Some(max), false) = (options.max, set) {
        options.timeouts.insert(ends[0], (max / 10).saturating_mul(6));
        options.timeouts.insert(ends[1], (max / 10).saturating_mul(12));
    }
}

fn track_sources(options: &mut PfStateOptions) {
    let by_rule = options.max_src_conn.is_some()
        || options.max_src_conn_rate.is_some()
        || options.max_src_nodes.is_some();
    if by_rule {
        options.source_track = Some(SourceTrack::Rule);
    } else if options.max_src_states.is_some() {
        options.source_track.get_or_insert(SourceTrack::Global);
    }
    let remembered = options.max_src_conn_rate.map_or(0, |rate| rate.seconds);
    let timeout = options.timeouts.entry(StateTimeout::SourceTrack).or_default();
    *timeout = remembered.max(*timeout);
}

fn check(options: &PfStateOptions, position: &Position) -> PfResult<()> {
    let global = options.source_track == Some(SourceTrack::Global);
    let by_rule = [
        ("max-src-nodes", options.max_src_nodes.is_some()),
        ("max-src-conn", options.max_src_conn.is_some()),
        ("max-src-conn-rate", options.max_src_conn_rate.is_some()),
    ];
    if let Some((name, _)) = by_rule.iter().find(|(_, set)| *set && global) {
        let problem = format!("'{name}' is incompatible with 'source-track global'");
        return Err(PfError::invalid(position, problem, "write 'source-track rule'"));
    }
    if options.overload.is_some() && options.max_src_conn.is_none() && options.max_src_conn_rate.is_none() {
        let problem = "'overload' requires 'max-src-conn' or 'max-src-conn-rate'";
        return Err(PfError::invalid(position, problem, "add one of them"));
    }
    Ok(())
}

/// The TCP flags that a rule asks for: those of the first packet if it keeps state.
pub fn flags(rule: &RuleSyntax, protocol: Option<u8>, state: &StateKeeping) -> FlagTest {
    if protocol.is_some_and(|protocol| protocol != crate::packet::protocol::TCP) {
        return FlagTest::ANY;
    }
    let first = *state != StateKeeping::None && !rule.options.common.fragment;
    rule.options.flags.unwrap_or(if first { FlagTest::FIRST } else { FlagTest::ANY })
}
