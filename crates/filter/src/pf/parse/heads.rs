//! What rules of all kinds have in front of their addresses.

use crate::address::Family;
use crate::packet::Direction;
use crate::pf::error::{PfError, PfResult};
use crate::pf::parse::tokens::Tokens;
use crate::pf::rule::{InterfaceTest, PfLog};

pub fn direction(tokens: &mut Tokens) -> Option<Direction> {
    if tokens.eat_word("in") {
        return Some(Direction::In);
    }
    tokens.eat_word("out").then_some(Direction::Out)
}

pub fn family(tokens: &mut Tokens) -> Option<Family> {
    if tokens.eat_word("inet") {
        return Some(Family::Inet);
    }
    tokens.eat_word("inet6").then_some(Family::Inet6)
}

/// `log` and `quick`, in any order.
pub fn log_and_quick(tokens: &mut Tokens) -> PfResult<(Option<PfLog>, bool)> {
    let before = tokens.eat_word("quick");
    let log = log(tokens)?;
    Ok((log, before || tokens.eat_word("quick")))
}

pub fn log(tokens: &mut Tokens) -> PfResult<Option<PfLog>> {
    if !tokens.eat_word("log") {
        return Ok(None);
    }
    let mut log = PfLog::default();
    if tokens.eat_sign('(') {
        while !tokens.eat_sign(')') {
            log_option(tokens, &mut log)?;
            tokens.eat_sign(',');
        }
    }
    Ok(Some(log))
}

fn log_option(tokens: &mut Tokens, log: &mut PfLog) -> PfResult<()> {
    if tokens.eat_word("to") {
        log.to = log_interface(tokens)?;
    } else if tokens.eat_word("all") {
        log.all = true;
    } else if tokens.eat_word("user") || tokens.eat_word("group") {
        log.user = true;
    } else {
        return Err(tokens.unexpected("'all', 'user', 'to' or ')'"));
    }
    Ok(())
}

fn log_interface(tokens: &mut Tokens) -> PfResult<u8> {
    let position = tokens.position();
    let name = tokens.text("a pflog interface")?;
    let number = name.strip_prefix("pflog").and_then(|number| number.parse().ok());
    let no_log = || {
        PfError::invalid(
            &position,
            format!("{name}: should be a pflog interface"),
            "write pflog0 to pflog255",
        )
    };
    number.ok_or_else(no_log)
}

/// `on`
pub fn interfaces(tokens: &mut Tokens) -> PfResult<Vec<InterfaceTest>> {
    if tokens.eat_word("on") { tokens.list(interface) } else { Ok(Vec::new()) }
}

pub fn interface(tokens: &mut Tokens) -> PfResult<InterfaceTest> {
    let not = tokens.eat_sign('!');
    if tokens.eat_word("any") {
        return Ok(InterfaceTest { not, name: "any".to_owned() });
    }
    Ok(InterfaceTest { not, name: interface_name(tokens)? })
}

pub fn interface_name(tokens: &mut Tokens) -> PfResult<String> {
    let position = tokens.position();
    let name = tokens.name("an interface")?;
    if name.len() > 15 {
        return Err(PfError::invalid(
            &position,
            format!("interface name '{name}' too long"),
            "use at most 15 characters",
        ));
    }
    Ok(name)
}
