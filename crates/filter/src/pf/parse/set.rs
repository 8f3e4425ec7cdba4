//! `set`: options of the whole rule set.

use crate::pf::config::{DebugLevel, Optimization, PfLimit, PfOption, RulesetOptimization, Syncookies};
use crate::pf::error::{PfError, PfResult};
use crate::pf::parse::addresses::without_quotes;
use crate::pf::parse::heads::{interface, interface_name};
use crate::pf::parse::numbers::{any_base, number32};
use crate::pf::parse::state;
use crate::pf::parse::tokens::Tokens;
use crate::pf::rule::BlockReply;
use crate::pf::state_options::{StateBinding, StateTimeout};
use crate::pf::syntax::Statement;
use crate::pf::token::TokenKind;

pub fn set(tokens: &mut Tokens) -> PfResult<Statement> {
    let position = tokens.position();
    tokens.expect_word("set")?;
    if tokens.eat_word("state-defaults") {
        return state::defaults(tokens).map(Statement::StateDefaults);
    }
    let word = tokens.word().unwrap_or_default().to_owned();
    let options = match word.as_str() {
        "timeout" => after(tokens, |tokens| tokens.list(timeout)),
        "limit" => after(tokens, |tokens| tokens.list(limit)),
        word => single(tokens, word).map(|option| vec![option]),
    }?;
    Ok(Statement::Options { position, options })
}

/// What stands after a word.
fn after<T>(tokens: &mut Tokens, read: impl FnOnce(&mut Tokens) -> PfResult<T>) -> PfResult<T> {
    tokens.advance();
    read(tokens)
}

fn single(tokens: &mut Tokens, word: &str) -> PfResult<PfOption> {
    match word {
        "skip" => after(tokens, skip),
        "optimization" => {
            after(tokens, |tokens| choice(tokens, Optimization::ALL)).map(PfOption::Optimization)
        }
        "ruleset-optimization" => after(tokens, |tokens| choice(tokens, RulesetOptimization::ALL))
            .map(PfOption::RulesetOptimization),
        "block-policy" => after(tokens, policy).map(PfOption::BlockPolicy),
        "fail-policy" => after(tokens, policy).map(PfOption::FailPolicy),
        "state-policy" => after(tokens, state_policy).map(PfOption::StatePolicy),
        "loginterface" => after(tokens, log_interface).map(PfOption::LogInterface),
        "debug" => after(tokens, |tokens| choice(tokens, DebugLevel::ALL)).map(PfOption::Debug),
        word => rare(tokens, word),
    }
}

fn rare(tokens: &mut Tokens, word: &str) -> PfResult<PfOption> {
    match word {
        "fingerprints" => after(tokens, fingerprints),
        "hostid" => after(tokens, host_id),
        "require-order" => after(tokens, yes_or_no).map(PfOption::RequireOrder),
        "reassemble" => after(tokens, reassemble),
        "syncookies" => after(tokens, syncookies).map(PfOption::Syncookies),
        "keepcounters" => after(tokens, |_| Ok(PfOption::KeepCounters)),
        _ => Err(tokens.unexpected("an option of pf.conf, such as skip, limit or timeout")),
    }
}

/// One of a set of words.
fn choice<T: Copy>(tokens: &mut Tokens, words: &[(T, &str)]) -> PfResult<T> {
    let found = words.iter().find(|(_, word)| tokens.is_word(word));
    let names = || words.iter().map(|(_, word)| *word).collect::<Vec<_>>().join(", ");
    let (value, _) = found.ok_or_else(|| tokens.unexpected(&format!("one of {}", names())))?;
    tokens.advance();
    Ok(*value)
}

fn skip(tokens: &mut Tokens) -> PfResult<PfOption> {
    tokens.expect_word("on")?;
    let position = tokens.position();
    let tests = tokens.list(interface)?;
    if tests.iter().any(|test| test.not) {
        let problem = "skip on ! <interface> is not supported";
        return Err(PfError::invalid(&position, problem, "name the interfaces to skip"));
    }
    let names: Vec<String> = tests.into_iter().map(|test| test.name).collect();
    Ok(PfOption::Skip(if names == ["none"] { Vec::new() } else { names }))
}

fn timeout(tokens: &mut Tokens) -> PfResult<PfOption> {
    let known = tokens.word().and_then(StateTimeout::named);
    let timeout = known.ok_or_else(|| tokens.unexpected("the name of a timeout, such as tcp.first"))?;
    tokens.advance();
    Ok(PfOption::Timeout(timeout, number32(tokens, "seconds")?))
}

fn limit(tokens: &mut Tokens) -> PfResult<PfOption> {
    let limit = choice(tokens, PfLimit::ALL)?;
    Ok(PfOption::Limit(limit, number32(tokens, "a limit")?))
}

fn policy(tokens: &mut Tokens) -> PfResult<BlockReply> {
    choice(tokens, &[(BlockReply::Drop, "drop"), (BlockReply::Return, "return")])
}

fn state_policy(tokens: &mut Tokens) -> PfResult<StateBinding> {
    choice(tokens, &[(StateBinding::Interface, "if-bound"), (StateBinding::Floating, "floating")])
}

fn log_interface(tokens: &mut Tokens) -> PfResult<Option<String>> {
    if tokens.eat_word("none") {
        return Ok(None);
    }
    interface_name(tokens).map(Some)
}

fn fingerprints(tokens: &mut Tokens) -> PfResult<PfOption> {
    let position = tokens.position();
    without_quotes(tokens.text("a path")?, &position).map(PfOption::Fingerprints)
}

fn host_id(tokens: &mut Tokens) -> PfResult<PfOption> {
    let position = tokens.position();
    match any_base(tokens, "a host's identifier", u32::MAX.into())? {
        0 => Err(PfError::invalid(&position, "hostid must be non-zero", "write another number")),
        id => Ok(PfOption::HostId(id as u32)),
    }
}

fn yes_or_no(tokens: &mut Tokens) -> PfResult<bool> {
    choice(tokens, &[(true, "yes"), (false, "no")])
}

fn reassemble(tokens: &mut Tokens) -> PfResult<PfOption> {
    let on = yes_or_no(tokens)?;
    Ok(PfOption::Reassemble { on, no_df: tokens.eat_word("no-df") })
}

fn syncookies(tokens: &mut Tokens) -> PfResult<Syncookies> {
    let adaptive = Syncookies::Adaptive { start: 25, end: 12 };
    let words = [(Syncookies::Never, "never"), (Syncookies::Always, "always"), (adaptive, "adaptive")];
    let chosen = choice(tokens, &words)?;
    match chosen {
        Syncookies::Adaptive { start, end } if tokens.eat_sign('(') => percentages(tokens, start, end),
        chosen => Ok(chosen),
    }
}

fn percentages(tokens: &mut Tokens, mut start: u8, mut end: u8) -> PfResult<Syncookies> {
    let position = tokens.position();
    while !tokens.eat_sign(')') {
        let is_start = choice(tokens, &[(true, "start"), (false, "end")])?;
        let percentage = percentage(tokens)?;
        *(if is_start { &mut start } else { &mut end }) = percentage;
        tokens.eat_sign(',');
    }
    if end >= start {
        return Err(PfError::invalid(
            &position,
            "'end' is not below 'start'",
            "write a lower percentage for it",
        ));
    }
    Ok(Syncookies::Adaptive { start, end })
}

fn percentage(tokens: &mut Tokens) -> PfResult<u8> {
    let text = match tokens.kind() {
        TokenKind::Word(text) => text.strip_suffix('%'),
        _ => None,
    };
    let number = text.and_then(|digits| digits.parse().ok()).filter(|number| (1..=100).contains(number));
    let number = number.ok_or_else(|| tokens.unexpected("a percentage from 1% to 100%"))?;
    tokens.advance();
    Ok(number)
}
