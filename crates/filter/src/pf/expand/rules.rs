//! Rules without lists from a rule with lists.

use crate::address::Family;
use crate::packet::protocol::{ICMP, ICMP6};
use crate::pf::address::{InterfaceAddresses, PfAddress, PfHost, PfPeer, PortTest};
use crate::pf::error::{PfError, PfResult};
use crate::pf::expand::budget::RuleBudget;
use crate::pf::expand::combine::{self, Combination, combinations};
use crate::pf::expand::pools::Pool;
use crate::pf::expand::resolve::{ResolvedHost, hosts};
use crate::pf::expand::{binat, check, labels, states};
use crate::pf::host::HostFacts;
use crate::pf::parse::block::{PORT, PORT6};
use crate::pf::policy::Policy;
use crate::pf::pool::PfPool;
use crate::pf::rule::{AnchorCall, BlockReply, InterfaceTest, PfAction, PfRule, TranslationKind};
use crate::pf::syntax::{ActionSyntax, AnchorSyntax, RuleSyntax};

/// The rules that one rule stands for. `number` is that of the first.
pub fn rules(
    syntax: &RuleSyntax,
    policy: &Policy,
    facts: &HostFacts,
    number: usize,
    budget: &RuleBudget,
) -> PfResult<Vec<PfRule>> {
    check::written(syntax)?;
    let expansion = Expansion::new(syntax, policy, facts, budget)?;
    let count = combine::count(syntax, expansion.from.len(), expansion.to.len());
    let more = count.and_then(|count| (count - 1).checked_mul(size(&expansion.action)));
    budget.take(more, &syntax.position, "the lists of rules")?;
    let mut rules = Vec::new();
    for combination in combinations(syntax, &expansion.from, &expansion.to, count.unwrap_or(0)) {
        if let Some(rule) = expansion.rule(&combination, policy)? {
            rules.extend(finished(rule, &expansion, number + rules.len())?);
        }
    }
    if rules.is_empty() {
        let problem = "rule expands to no valid combination";
        return Err(PfError::invalid(&syntax.position, problem, "use addresses of one family"));
    }
    Ok(rules)
}

/// How many rules a rule with this action is, with those in its braces.
pub fn size(action: &PfAction) -> usize {
    let PfAction::Anchor(call) = action else { return 1 };
    1 + call.body.iter().map(|rule| size(&rule.action)).sum::<usize>()
}

/// A rule, or the two that `binat-to` stands for.
fn finished(rule: PfRule, expansion: &Expansion, number: usize) -> PfResult<Vec<PfRule>> {
    let translates = matches!(rule.action, PfAction::Translate { .. });
    let mut rules = match &expansion.binat {
        Some(pool) if !translates => binat::two_rules(rule, pool)?,
        _ => vec![rule],
    };
    for (index, rule) in rules.iter_mut().enumerate() {
        check::expanded(rule)?;
        binat::check_sizes(rule)?;
        let written = std::mem::take(&mut rule.options.labels);
        rule.options.labels =
            written.iter().map(|label| labels::expand(label, rule, number + index)).collect();
    }
    Ok(rules)
}

/// What all rules that a rule expands to have in common.
struct Expansion<'a> {
    syntax: &'a RuleSyntax,
    action: PfAction,
    from: Vec<ResolvedHost>,
    to: Vec<ResolvedHost>,
    family: Option<Family>,
    nat: Option<Pool<'a>>,
    rdr: Option<Pool<'a>>,
    binat: Option<Pool<'a>>,
}

impl<'a> Expansion<'a> {
    fn new(
        syntax: &'a RuleSyntax,
        policy: &Policy,
        facts: &HostFacts,
        budget: &RuleBudget,
    ) -> PfResult<Expansion<'a>> {
        let pool =
            |syntax: &'a Option<_>| syntax.as_ref().map(|syntax| Pool::resolve(syntax, facts)).transpose();
        let options = &syntax.options;
        let mut expansion = Expansion {
            syntax,
            action: action(&syntax.action, policy, facts, budget)?,
            from: hosts(&syntax.from.hosts, facts)?,
            to: hosts(&syntax.to.hosts, facts)?,
            family: syntax.family,
            nat: pool(&options.nat)?,
            rdr: pool(&options.rdr)?,
            binat: pool(&options.binat)?,
        };
        expansion.family = expansion.family()?;
        binat::check(syntax, &expansion.from, &expansion.to)?;
        Ok(expansion)
    }

    /// The family of every rule: as written, or of a translation's first address.
    fn family(&self) -> PfResult<Option<Family>> {
        if self.syntax.family.is_some() || !matches!(self.action, PfAction::Translate { .. }) {
            return Ok(self.syntax.family);
        }
        let first = |hosts: &[ResolvedHost]| hosts.first().and_then(|host| host.family);
        Ok(first(&self.from).or_else(|| first(&self.to)))
    }

    /// The rule of one combination, unless its members contradict each other.
    fn rule(&self, one: &Combination, policy: &Policy) -> PfResult<Option<PfRule>> {
        let (Ok(family), Ok(scope)) = (self.family_of(one), scope(one)) else { return Ok(None) };
        let family = self.family_of_pools(family)?;
        let state = states::keeping(self.syntax, &self.action, policy)?;
        let mut rule = PfRule {
            position: self.syntax.position.clone(),
            action: of_family(self.action.clone(), family),
            direction: self.syntax.direction,
            log: self.syntax.log,
            quick: self.syntax.quick,
            interface: one.interface.cloned().or(scope),
            family,
            protocol: one.protocol,
            from: peer(one.from, one.from_port, family),
            os: one.os.cloned(),
            to: peer(one.to, one.to_port, family),
            user: one.user,
            group: one.group,
            icmp: self.icmp(one)?,
            flags: states::flags(self.syntax, one.protocol, &state),
            state,
            options: self.syntax.options.common.clone(),
            nat: None,
            rdr: None,
        };
        rule.nat = self.pool(&self.nat, TranslationKind::Nat, &rule)?;
        rule.rdr = self.pool(&self.rdr, TranslationKind::Rdr, &rule)?;
        if matches!(rule.action, PfAction::Translate { .. }) && self.binat.is_some() {
            rule.rdr = self.pool(&self.binat, TranslationKind::Binat, &rule)?;
        }
        Ok(Some(rule))
    }

    fn family_of(&self, one: &Combination) -> Result<Option<Family>, Contradiction> {
        let of = |host: Option<&ResolvedHost>| host.and_then(|host| host.family);
        let known = agreed(self.family, of(one.from))?;
        agreed(known, of(one.to))
    }

    /// Without a family of its own a rule gets that of the addresses it translates to.
    fn family_of_pools(&self, family: Option<Family>) -> PfResult<Option<Family>> {
        if family.is_some() {
            return Ok(family);
        }
        let pools = [&self.nat, &self.rdr, &self.binat];
        pools.into_iter().flatten().find_map(|pool| pool.family().transpose()).transpose()
    }

    fn pool(&self, pool: &Option<Pool>, kind: TranslationKind, rule: &PfRule) -> PfResult<Option<PfPool>> {
        pool.as_ref().map(|pool| pool.of_rule(kind, rule.family, rule.to.port)).transpose()
    }

    fn icmp(&self, one: &Combination) -> PfResult<Option<crate::pf::rule::IcmpTest>> {
        let Some((family, test)) = one.icmp else { return Ok(None) };
        let protocol = if *family == Family::Inet { ICMP } else { ICMP6 };
        if one.protocol == Some(protocol) {
            return Ok(Some(*test));
        }
        let problem = "icmp-type mismatch";
        let fix = "write 'proto icmp' with icmp-type, and 'proto icmp6' with icmp6-type";
        Err(PfError::invalid(&self.syntax.position, problem, fix))
    }
}

/// Two members of a combination exclude each other.
struct Contradiction;

fn agreed<T: PartialEq>(one: Option<T>, other: Option<T>) -> Result<Option<T>, Contradiction> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => Err(Contradiction),
        (one, other) => Ok(one.or(other)),
    }
}

/// The interface of link-local addresses, which must be the rule's.
fn scope(one: &Combination) -> Result<Option<InterfaceTest>, Contradiction> {
    let of = |host: Option<&ResolvedHost>| host.and_then(|host| host.scope.clone());
    let scope = agreed(of(one.from), of(one.to))?;
    let scope = agreed(scope, one.interface.filter(|_| scoped(one)).map(|test| test.name.clone()))?;
    Ok(scope.map(|name| InterfaceTest { not: false, name }))
}

fn scoped(one: &Combination) -> bool {
    [one.from, one.to].iter().flatten().any(|host| host.scope.is_some())
}

fn peer(host: Option<&ResolvedHost>, port: Option<PortTest>, family: Option<Family>) -> PfPeer {
    let resolved =
        |host: &ResolvedHost| PfHost { not: host.not, address: fitted(host.address.clone(), family) };
    PfPeer { host: host.map_or(PfHost::ANY, resolved), port }
}

/// Leaves out the length of a prefix that holds a single address.
fn fitted(address: PfAddress, family: Option<Family>) -> PfAddress {
    let longest = if family == Some(Family::Inet) { 32 } else { 128 };
    match address {
        PfAddress::Dynamic(InterfaceAddresses { interface, modifiers, length }) => {
            let length = length.filter(|length| *length < longest);
            PfAddress::Dynamic(InterfaceAddresses { interface, modifiers, length })
        }
        address => address,
    }
}

/// Without the ICMP code of the other family, which is never sent.
fn of_family(action: PfAction, family: Option<Family>) -> PfAction {
    match (action, family) {
        (PfAction::Block(BlockReply::Icmp { code, .. }), Some(Family::Inet)) => {
            PfAction::Block(BlockReply::Icmp { code, code6: PORT6 })
        }
        (PfAction::Block(BlockReply::Icmp { code6, .. }), Some(Family::Inet6)) => {
            PfAction::Block(BlockReply::Icmp { code: PORT, code6 })
        }
        (action, _) => action,
    }
}

fn action(
    syntax: &ActionSyntax,
    policy: &Policy,
    facts: &HostFacts,
    budget: &RuleBudget,
) -> PfResult<PfAction> {
    Ok(match syntax {
        ActionSyntax::Pass => PfAction::Pass,
        ActionSyntax::Block(reply) => PfAction::Block(reply.unwrap_or(policy.block)),
        ActionSyntax::Match => PfAction::Match,
        ActionSyntax::Scrub => PfAction::Scrub,
        ActionSyntax::NoScrub => PfAction::NoScrub,
        ActionSyntax::Translate { kind, pass } => PfAction::Translate { kind: *kind, pass: *pass },
        ActionSyntax::NoTranslate(kind) => PfAction::NoTranslate(*kind),
        ActionSyntax::Anchor(anchor) => PfAction::Anchor(call(anchor, policy, facts, budget)?),
    })
}

fn call(
    anchor: &AnchorSyntax,
    policy: &Policy,
    facts: &HostFacts,
    budget: &RuleBudget,
) -> PfResult<AnchorCall> {
    let mut body = Vec::new();
    for syntax in &anchor.body {
        body.extend(rules(syntax, policy, facts, body.len(), budget)?);
    }
    Ok(AnchorCall { kind: anchor.kind, name: anchor.name.clone(), body })
}
