//! One statement of a rule set.

use crate::pf::error::PfResult;
use crate::pf::parse::tokens::Tokens;
use crate::pf::parse::{antispoof, rules, set, table};
use crate::pf::syntax::Statement;
use crate::pf::token::TokenKind;

/// The statement that the tokens are, unless they are an empty line.
pub fn statement(tokens: &mut Tokens) -> PfResult<Option<Statement>> {
    if tokens.at_end() {
        return Ok(None);
    }
    let statement = content(tokens)?;
    tokens.finish()?;
    Ok(Some(statement))
}

fn content(tokens: &mut Tokens) -> PfResult<Statement> {
    match tokens.word() {
        Some("include") => include(tokens),
        Some("set") => set::set(tokens),
        Some("table") => table::table(tokens).map(Statement::Table),
        Some("antispoof") => antispoof::antispoof(tokens).map(Statement::Antispoof),
        Some("load") => load_anchor(tokens),
        _ if tokens.second_is_sign('=') => definition(tokens),
        _ => rule(tokens),
    }
}

fn rule(tokens: &mut Tokens) -> PfResult<Statement> {
    let no = tokens.eat_word("no");
    let rule = if tokens.is_word("scrub") {
        Some(rules::scrub(tokens, no)?)
    } else {
        rules::translation(tokens, no)?
    };
    let rule = match rule {
        None if !no => other_rule(tokens)?,
        rule => rule,
    };
    let rule =
        rule.ok_or_else(|| tokens.unexpected(if no { "nat, rdr, binat or scrub" } else { "a statement" }))?;
    Ok(Statement::Rule(Box::new(rule)))
}

fn other_rule(tokens: &mut Tokens) -> PfResult<Option<crate::pf::syntax::RuleSyntax>> {
    match rules::filter_or_anchor(tokens)? {
        None => rules::translation_anchor(tokens),
        rule => Ok(rule),
    }
}

fn include(tokens: &mut Tokens) -> PfResult<Statement> {
    tokens.expect_word("include")?;
    let position = tokens.position();
    Ok(Statement::Include { position, path: path(tokens)? })
}

/// A path, with or without quotes.
fn path(tokens: &mut Tokens) -> PfResult<String> {
    let mut path = String::new();
    if tokens.eat_sign('/') {
        path.push('/');
    }
    path.push_str(&tokens.text("a path")?);
    while tokens.eat_sign('/') {
        path.push('/');
        path.push_str(&tokens.text("the rest of the path")?);
    }
    Ok(path)
}

/// `name = "value"`
fn definition(tokens: &mut Tokens) -> PfResult<Statement> {
    let name = tokens.name("a macro")?;
    tokens.expect_sign('=')?;
    let mut values = Vec::new();
    while values.is_empty() || !tokens.at_end() {
        values.push(value(tokens)?);
    }
    Ok(Statement::Macro { name, value: values.join(" ") })
}

fn value(tokens: &mut Tokens) -> PfResult<String> {
    if let TokenKind::Number(number) = *tokens.kind() {
        tokens.advance();
        return Ok(number.to_string());
    }
    tokens.text("text in quotes")
}

fn load_anchor(tokens: &mut Tokens) -> PfResult<Statement> {
    tokens.expect_word("load")?;
    tokens.expect_word("anchor")?;
    let position = tokens.position();
    let name = rules::anchor_name(tokens)?;
    tokens.expect_word("from")?;
    Ok(Statement::LoadAnchor { position, name, path: path(tokens)? })
}
