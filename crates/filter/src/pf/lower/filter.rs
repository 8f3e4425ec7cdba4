//! Filter rules. The rules of an anchor are tried where the anchor stands, with the anchor's conditions before their own.

use crate::pf::config::{LoadedAnchor, PfConfig};
use crate::pf::error::{PfError, PfResult};
use crate::pf::expand::budget::RuleBudget;
use crate::pf::expand::rules::size;
use crate::pf::lower::conditions::clauses;
use crate::pf::lower::names::PfNames;
use crate::pf::lower::states::state;
use crate::pf::lower::support;
use crate::pf::parse::block::{PORT, PORT6};
use crate::pf::rule::{AnchorCall, BlockReply, PfAction, PfRule};
use crate::rule::{Clause, CompiledRule, RejectWith, RuleAction, Test};
use crate::state::Timeouts;

/// Filter rules while they are lowered.
pub struct Filter<'a, 'n> {
    pub rules: Vec<CompiledRule>,
    pub timeouts: Vec<Timeouts>,
    names: &'n mut PfNames<'a>,
    loaded: &'a [LoadedAnchor],
    /// The anchors that the rules at hand are in.
    path: Vec<&'a str>,
    /// Each rule `anchor` has the rules of its anchors for itself.
    anchored: RuleBudget,
    /// Some rule lets packets with IP options pass.
    allows_options: bool,
    number: u32,
}

impl<'a, 'n> Filter<'a, 'n> {
    pub fn lower(
        config: &'a PfConfig,
        names: &'n mut PfNames<'a>,
        timeouts: Vec<Timeouts>,
    ) -> PfResult<Filter<'a, 'n>> {
        let loaded = config.loaded.iter().map(|anchor| &anchor.config.rules.filter);
        let written = loaded.chain([&config.rules.filter]).flatten();
        let anchored = RuleBudget::beside(written.clone().map(|rule| size(&rule.action)).sum());
        let allows_options = written.into_iter().any(allows_options);
        let (rules, loaded) = (Vec::new(), config.loaded.as_slice());
        let mut filter =
            Filter { rules, timeouts, names, loaded, path: Vec::new(), anchored, allows_options, number: 0 };
        filter.rules.push(block_options(!allows_options));
        filter.all(&config.rules.filter, &[])?;
        Ok(filter)
    }

    fn all(&mut self, rules: &'a [PfRule], outer: &[Clause]) -> PfResult<()> {
        rules.iter().try_for_each(|rule| self.rule(rule, outer))
    }

    fn rule(&mut self, rule: &'a PfRule, outer: &[Clause]) -> PfResult<()> {
        support::rule(rule)?;
        let own = clauses(rule, self.names)?;
        let clauses = [outer, &own].concat();
        if let PfAction::Anchor(call) = &rule.action {
            return self.anchor(rule, call, clauses);
        }
        let compiled = self.compiled(rule, clauses)?;
        if !self.path.is_empty() {
            self.anchored.take(Some(1), &rule.position, "the anchors")?;
        }
        self.push(compiled, rule.options.allow_opts);
        self.number += 1;
        Ok(())
    }

    fn compiled(&mut self, rule: &PfRule, clauses: Vec<Clause>) -> PfResult<CompiledRule> {
        Ok(CompiledRule {
            clauses,
            action: action(&rule.action),
            quick: rule.quick,
            tag: rule.options.tag.as_ref().map_or(0, |tag| self.names.tag(tag)),
            allows_options: rule.options.allow_opts,
            state: state(rule, &mut self.timeouts)?,
            number: self.number,
            text: rule.to_string(),
            number_length: 0,
            labels: rule.options.labels.clone(),
        })
    }

    /// A rule that passes blocks packets with IP options, unless it allows them.
    fn push(&mut self, rule: CompiledRule, allow_options: bool) {
        if !self.allows_options || allow_options || rule.action != RuleAction::Pass {
            self.rules.push(rule);
            return;
        }
        let with = |clause: Clause| [rule.clauses.as_slice(), &[clause]].concat();
        let without_options = with(Clause::not(Test::Options));
        let block = CompiledRule {
            clauses: with(Clause::of(Test::Options)),
            state: None,
            action: RuleAction::Block,
            ..rule.clone()
        };
        self.rules.push(CompiledRule { clauses: without_options, ..rule });
        self.rules.push(block);
    }

    fn anchor(&mut self, rule: &'a PfRule, call: &'a AnchorCall, clauses: Vec<Clause>) -> PfResult<()> {
        let since = self.rules.len() as u32;
        if let Some(tag) = &rule.options.tag {
            let tag = self.names.tag(tag);
            self.rules.push(CompiledRule { tag, ..self.marker(rule, clauses.clone(), RuleAction::Count) });
        }
        let inside = self.inside(call);
        self.path.push(call.name.as_deref().unwrap_or(UNNAMED));
        inside.into_iter().try_for_each(|rules| self.all(rules, &clauses))?;
        self.path.pop();
        check_anchor(rule, &self.rules[since as usize..])?;
        if rule.quick {
            let stop = self.marker(rule, clauses, RuleAction::StopIfDecided { since });
            self.rules.push(stop);
        }
        Ok(())
    }

    fn marker(&self, rule: &PfRule, clauses: Vec<Clause>, action: RuleAction) -> CompiledRule {
        let text = rule.to_string().lines().next().unwrap_or_default().to_owned();
        CompiledRule { clauses, number: self.number, text, ..CompiledRule::new(action) }
    }

    /// The rules that an anchor leads to: those in its braces, and those loaded under its name, or under names below it in
    /// alphabetical order. An anchor in an anchor has its name below that of the outer one.
    fn inside(&self, call: &'a AnchorCall) -> Vec<&'a [PfRule]> {
        let mut path = self.path.clone();
        path.push(call.name.as_deref().unwrap_or(UNNAMED));
        let path = path.join("/");
        let mut named: Vec<_> = self.loaded.iter().filter(|anchor| is_named(&path, &anchor.name)).collect();
        named.sort_by_key(|anchor| &anchor.name);
        let loaded = named.into_iter().map(|anchor| anchor.config.rules.filter.as_slice());
        [call.body.as_slice()].into_iter().chain(loaded).collect()
    }
}

/// Stands for the name of an anchor without one; no loaded anchor has it.
const UNNAMED: &str = "_";

/// Whether a path means a loaded anchor; `name/*` stands for all below.
fn is_named(path: &str, loaded: &str) -> bool {
    match path.strip_suffix('*') {
        Some(parent) => {
            loaded.strip_prefix(parent).is_some_and(|child| !child.is_empty() && !child.contains('/'))
        }
        None => path == loaded,
    }
}

/// The conditions of an anchor are tested again for each rule in it, so they must not change meanwhile.
fn check_anchor(rule: &PfRule, inside: &[CompiledRule]) -> PfResult<()> {
    let word = if rule.options.probability.is_some() {
        "probability"
    } else if rule.options.tagged.is_some() && inside.iter().any(|rule| rule.tag != 0) {
        "tagged"
    } else {
        return Ok(());
    };
    Err(PfError::refused(&rule.position, word, "write it at the rules in the anchor"))
}

fn allows_options(rule: &PfRule) -> bool {
    match &rule.action {
        PfAction::Anchor(call) => call.body.iter().any(allows_options),
        _ => rule.options.allow_opts,
    }
}

/// What stands first: packets that no rule matches pass, but not with options. If no rule allows them, the rest is not tried.
fn block_options(quick: bool) -> CompiledRule {
    let text = "packets with IP options, unless a rule allows them by allow-opts".to_owned();
    let clauses = vec![Clause::of(Test::Options)];
    CompiledRule { clauses, quick, text, ..CompiledRule::new(RuleAction::Block) }
}

fn action(action: &PfAction) -> RuleAction {
    let reject =
        |reset, icmp, icmp6| RuleAction::Reject(RejectWith { reset, reset6: reset, icmp, icmp6, mtu: 0 });
    match action {
        PfAction::Block(BlockReply::Drop) => RuleAction::Block,
        PfAction::Block(BlockReply::Return) => reject(true, Some(PORT), Some(PORT6)),
        PfAction::Block(BlockReply::Rst { .. }) => reject(true, None, None),
        PfAction::Block(BlockReply::Icmp { code, code6 }) => reject(false, Some(*code), Some(*code6)),
        PfAction::Match => RuleAction::Count,
        _ => RuleAction::Pass,
    }
}
