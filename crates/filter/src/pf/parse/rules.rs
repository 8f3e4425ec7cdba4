//! Rules: `pass`, `block`, `match`, `scrub`, `nat`, `rdr`, `binat` and anchors.

use crate::pf::error::{PfError, PfResult, Position};
use crate::pf::parse::addresses::from_to;
use crate::pf::parse::filter_options::{common, filter_options};
use crate::pf::parse::heads::{direction, family, interfaces, log, log_and_quick};
use crate::pf::parse::numbers::protocol;
use crate::pf::parse::pool::pool;
use crate::pf::parse::tokens::Tokens;
use crate::pf::parse::{block, scrub};
use crate::pf::rule::TranslationKind;
use crate::pf::syntax::{ActionSyntax, AnchorSyntax, OptionsSyntax, PeerSyntax, RuleSyntax};
use crate::pf::token::TokenKind;

/// A filter rule, or a rule that leads to an anchor, if one stands here.
pub fn filter_or_anchor(tokens: &mut Tokens) -> PfResult<Option<RuleSyntax>> {
    let position = tokens.position();
    let action = match tokens.word() {
        Some("pass") => ActionSyntax::Pass,
        Some("match") => ActionSyntax::Match,
        Some("block") => {
            tokens.advance();
            let reply = block::reply(tokens)?;
            return filter(tokens, ActionSyntax::Block(reply), position).map(Some);
        }
        Some("anchor") => return anchor(tokens, position).map(Some),
        _ => return Ok(None),
    };
    tokens.advance();
    filter(tokens, action, position).map(Some)
}

fn filter(tokens: &mut Tokens, action: ActionSyntax, position: Position) -> PfResult<RuleSyntax> {
    let direction = direction(tokens);
    let (log, quick) = log_and_quick(tokens)?;
    let mut rule = selection(tokens, action, position)?;
    (rule.direction, rule.log, rule.quick) = (direction, log, quick);
    rule.options = filter_options(tokens)?;
    Ok(rule)
}

/// The part that all rules have: interfaces, family, protocols and addresses.
fn selection(tokens: &mut Tokens, action: ActionSyntax, position: Position) -> PfResult<RuleSyntax> {
    let interfaces = interfaces(tokens)?;
    if let Some(word @ ("route-to" | "reply-to" | "dup-to" | "fastroute")) = tokens.word() {
        return Err(tokens.unexpected(&format!("no '{word}'")));
    }
    let family = family(tokens);
    let protocols = if tokens.eat_word("proto") { tokens.list(protocol)? } else { Vec::new() };
    let peers = from_to(tokens)?;
    let (from, oses, to) = (peers.from, peers.oses, peers.to);
    let options = OptionsSyntax::default();
    let (direction, log, quick) = (None, None, false);
    Ok(RuleSyntax {
        position,
        action,
        direction,
        log,
        quick,
        interfaces,
        family,
        protocols,
        from,
        oses,
        to,
        options,
    })
}

pub fn scrub(tokens: &mut Tokens, no: bool) -> PfResult<RuleSyntax> {
    let position = tokens.position();
    tokens.expect_word("scrub")?;
    let direction = direction(tokens);
    let (log, quick) = log_and_quick(tokens)?;
    if quick {
        return Err(PfError::invalid(&position, "scrub rules do not support 'quick'", "leave it out"));
    }
    let action = if no { ActionSyntax::NoScrub } else { ActionSyntax::Scrub };
    let mut rule = selection(tokens, action, position)?;
    (rule.direction, rule.log) = (direction, log);
    while scrub::option(tokens, &mut rule.options.common.scrub)? || common(tokens, &mut rule.options.common)?
    {
        tokens.eat_sign(',');
    }
    reassembly_has_no_direction(&rule)?;
    Ok(rule)
}

fn reassembly_has_no_direction(rule: &RuleSyntax) -> PfResult<()> {
    if !rule.options.common.scrub.reassemble_tcp || rule.direction.is_none() {
        return Ok(());
    }
    let problem = "reassemble tcp rules can not specify direction";
    Err(PfError::invalid(&rule.position, problem, "leave out 'in' or 'out'"))
}

/// `nat`, `rdr` or `binat`, of which `no` may be read already.
pub fn translation(tokens: &mut Tokens, no: bool) -> PfResult<Option<RuleSyntax>> {
    let kind = match tokens.word() {
        Some("nat") => TranslationKind::Nat,
        Some("rdr") => TranslationKind::Rdr,
        Some("binat") => TranslationKind::Binat,
        _ => return Ok(None),
    };
    let position = tokens.position();
    tokens.advance();
    let pass = tokens.eat_word("pass");
    if pass && no {
        return Err(PfError::invalid(&position, "\"pass\" not valid with \"no\"", "leave out one of them"));
    }
    let log = log(tokens)?;
    let action = if no { ActionSyntax::NoTranslate(kind) } else { ActionSyntax::Translate { kind, pass } };
    let mut rule = selection(tokens, action, position)?;
    rule.log = log;
    while common(tokens, &mut rule.options.common)? {}
    redirection(tokens, kind, no, &mut rule)?;
    Ok(Some(rule))
}

fn redirection(tokens: &mut Tokens, kind: TranslationKind, no: bool, rule: &mut RuleSyntax) -> PfResult<()> {
    let arrow = *tokens.kind() == TokenKind::Arrow;
    if no && arrow {
        return Err(tokens.invalid("translation rule with 'no' does not need '->'", "leave it out"));
    }
    if no {
        return Ok(());
    }
    if !arrow {
        return Err(tokens.unexpected("'->' and an address"));
    }
    tokens.advance();
    let pool = Some(pool(tokens)?);
    match kind {
        TranslationKind::Nat => rule.options.nat = pool,
        TranslationKind::Rdr => rule.options.rdr = pool,
        TranslationKind::Binat => rule.options.binat = pool,
    }
    Ok(())
}

/// `nat-anchor`, `rdr-anchor` or `binat-anchor`.
pub fn translation_anchor(tokens: &mut Tokens) -> PfResult<Option<RuleSyntax>> {
    let kind = match tokens.word() {
        Some("nat-anchor") => TranslationKind::Nat,
        Some("rdr-anchor") => TranslationKind::Rdr,
        Some("binat-anchor") => TranslationKind::Binat,
        _ => return Ok(None),
    };
    let position = tokens.position();
    tokens.advance();
    let name = Some(anchor_name(tokens)?);
    let anchor = AnchorSyntax { kind: Some(kind), name, body: Vec::new() };
    let mut rule = selection(tokens, ActionSyntax::Anchor(anchor), position)?;
    while common(tokens, &mut rule.options.common)? {}
    Ok(Some(rule))
}

fn anchor(tokens: &mut Tokens, position: Position) -> PfResult<RuleSyntax> {
    tokens.expect_word("anchor")?;
    let head = ["in", "out", "quick", "on", "inet", "inet6", "proto", "all", "from", "to"];
    let named = !tokens.is_sign('{') && !tokens.word().is_some_and(|word| head.contains(&word));
    let name = if named { Some(anchor_name(tokens)?) } else { None };
    let direction = direction(tokens);
    let quick = tokens.eat_word("quick");
    let action = ActionSyntax::Anchor(AnchorSyntax { kind: None, name, body: Vec::new() });
    let mut rule = selection(tokens, action, position)?;
    (rule.direction, rule.quick) = (direction, quick);
    rule.options = filter_options(tokens)?;
    braces(tokens, &mut rule)?;
    Ok(rule)
}

/// The name or path of an anchor. `*` at the end stands for all anchors below.
pub fn anchor_name(tokens: &mut Tokens) -> PfResult<String> {
    let position = tokens.position();
    let mut name = tokens.text("the name of an anchor")?;
    while tokens.eat_sign('/') {
        let rest = if tokens.eat_sign('*') { "*".to_owned() } else { tokens.text("the rest of the path")? };
        name = format!("{name}/{rest}");
    }
    let plain = |character: char| character.is_ascii_graphic() && character != '"' && character != '\\';
    if name.is_empty() || name.starts_with('_') || name.contains("/_") || !name.chars().all(plain) {
        let fix = "use letters, digits and any of . - _ / but no '_' at the start of a part";
        return Err(PfError::invalid(&position, format!("\"{name}\" cannot name an anchor"), fix));
    }
    Ok(name)
}

fn braces(tokens: &mut Tokens, rule: &mut RuleSyntax) -> PfResult<()> {
    let ActionSyntax::Anchor(anchor) = &mut rule.action else {
        return Ok(());
    };
    if tokens.is_sign('{') {
        if anchor.name.as_ref().is_some_and(|name| name.contains('/')) {
            let problem = "anchor paths containing '/' cannot be used for inline anchors";
            return Err(tokens.invalid(problem, "name the anchor without a path"));
        }
        anchor.body = tokens.nested(body)?;
    } else if anchor.name.is_none() {
        return Err(tokens.unexpected("a name of the anchor, or its rules in braces"));
    }
    Ok(())
}

/// The rules in braces, each on a line of its own.
fn body(tokens: &mut Tokens) -> PfResult<Vec<RuleSyntax>> {
    tokens.expect_sign('{')?;
    let mut rules = Vec::new();
    tokens.skip_newlines();
    while !tokens.eat_sign('}') {
        let rule = filter_or_anchor(tokens)?;
        let rule = rule.ok_or_else(|| tokens.unexpected("a filter rule, an anchor or '}'"))?;
        rules.push(rule);
        if !tokens.is_sign('}') {
            tokens.finish()?;
        }
        tokens.skip_newlines();
    }
    Ok(rules)
}

/// A selection without conditions, for rules that are made and not read.
pub fn everything(action: ActionSyntax, position: Position) -> RuleSyntax {
    RuleSyntax {
        position,
        action,
        direction: None,
        log: None,
        quick: false,
        interfaces: Vec::new(),
        family: None,
        protocols: Vec::new(),
        from: PeerSyntax::default(),
        oses: Vec::new(),
        to: PeerSyntax::default(),
        options: OptionsSyntax::default(),
    }
}
