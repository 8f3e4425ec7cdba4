//! What may follow the addresses of a filter rule, in any order.

use crate::address::Family;
use crate::pf::error::{PfError, PfResult};
use crate::pf::names::icmp;
use crate::pf::parse::addresses::without_quotes;
use crate::pf::parse::block;
use crate::pf::parse::heads::interface;
use crate::pf::parse::numbers::{any_base, number, number32, owner_test, positive, type_of_service};
use crate::pf::parse::pool::pool;
use crate::pf::parse::tokens::Tokens;
use crate::pf::parse::{scrub, state};
use crate::pf::rule::{FlagTest, IcmpTest, InterfaceTest, PacketRate, Probability, RuleOptions, TagTest};
use crate::pf::syntax::{OptionsSyntax, StateSyntax};
use crate::pf::token::TokenKind;

/// The most labels of a rule.
const LABELS: usize = 5;

pub fn filter_options(tokens: &mut Tokens) -> PfResult<OptionsSyntax> {
    let mut options = OptionsSyntax::default();
    loop {
        let known = matching(tokens, &mut options)?
            || common(tokens, &mut options.common)?
            || translation(tokens, &mut options)?
            || keeping(tokens, &mut options)?;
        if !known {
            return Ok(options);
        }
    }
}

/// Fails if an option stands twice in a rule.
fn once<T>(tokens: &Tokens, place: &Option<T>, word: &str) -> PfResult<()> {
    if place.is_none() {
        return Ok(());
    }
    Err(tokens.invalid(format!("{word} cannot be redefined"), "keep one of the two"))
}

fn matching(tokens: &mut Tokens, options: &mut OptionsSyntax) -> PfResult<bool> {
    if tokens.eat_word("user") {
        options.users.extend(tokens.list(owner_test)?);
    } else if tokens.eat_word("group") {
        options.groups.extend(tokens.list(owner_test)?);
    } else if tokens.is_word("flags") {
        once(tokens, &options.flags, "flags")?;
        options.flags = Some(flags(tokens)?);
    } else if tokens.is_word("icmp-type") || tokens.is_word("icmp6-type") {
        let family = if tokens.is_word("icmp-type") { Family::Inet } else { Family::Inet6 };
        once(tokens, &options.icmp.first(), "icmp-type")?;
        tokens.advance();
        options.icmp = tokens.list(|tokens| Ok((family, icmp_test(tokens, family)?)))?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn flags(tokens: &mut Tokens) -> PfResult<FlagTest> {
    tokens.expect_word("flags")?;
    if tokens.eat_word("any") {
        return Ok(FlagTest::ANY);
    }
    let set = if tokens.is_sign('/') { 0 } else { flag_letters(tokens)? };
    tokens.expect_sign('/')?;
    let test = FlagTest { set, of: flag_letters(tokens)? };
    if test.set & test.of != test.set {
        return Err(tokens.invalid("flags always false", "name every flag before '/' also after it"));
    }
    Ok(test)
}

fn flag_letters(tokens: &mut Tokens) -> PfResult<u8> {
    let letters = tokens.word().ok_or_else(|| tokens.unexpected("letters of TCP flags or 'any'"))?;
    let bit = |letter| FlagTest::LETTERS.find(letter).map(|bit| 1_u8 << bit);
    let bits: Option<Vec<u8>> = letters.chars().map(bit).collect();
    let bad =
        || tokens.invalid(format!("bad flags {letters}"), format!("use letters of {}", FlagTest::LETTERS));
    let mask = bits.ok_or_else(bad)?.into_iter().fold(0, |mask, bit| mask | bit);
    tokens.advance();
    Ok(mask)
}

fn icmp_test(tokens: &mut Tokens, family: Family) -> PfResult<IcmpTest> {
    let named = tokens.word().and_then(|word| icmp::kind(word, family));
    let kind = match named {
        Some(kind) => {
            tokens.advance();
            kind
        }
        None => number(tokens, "an ICMP type's name or number", 255)?,
    };
    let code = if tokens.eat_word("code") { Some(block::code(tokens, kind, family)?) } else { None };
    Ok(IcmpTest { kind, code })
}

/// Options that list expansion does not multiply.
pub fn common(tokens: &mut Tokens, options: &mut RuleOptions) -> PfResult<bool> {
    Ok(marks(tokens, options)? || limits(tokens, options)? || changes(tokens, options)?)
}

/// Labels and tags.
fn marks(tokens: &mut Tokens, options: &mut RuleOptions) -> PfResult<bool> {
    if tokens.eat_word("label") {
        options.labels.push(label(tokens, options.labels.len())?);
    } else if tokens.eat_word("ridentifier") {
        let id = any_base(tokens, "a rule's identifier", u32::MAX.into())?;
        options.ridentifier = Some(id as u32).filter(|id| *id > 0);
    } else if tokens.eat_word("tag") {
        options.tag = Some(tokens.name("a tag")?);
    } else if tokens.is_word("tagged") || (tokens.is_sign('!') && tokens.second_is("tagged")) {
        let not = tokens.eat_sign('!');
        tokens.expect_word("tagged")?;
        options.tagged = Some(TagTest { not, name: tokens.name("a tag")? });
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn label(tokens: &mut Tokens, before: usize) -> PfResult<String> {
    let position = tokens.position();
    if before == LABELS {
        return Err(tokens.invalid(format!("label can only be used {LABELS} times"), "leave out the others"));
    }
    let label = without_quotes(tokens.text("a label")?, &position)?;
    if label.len() > 63 {
        return Err(PfError::invalid(&position, "rule label too long", "use at most 63 characters"));
    }
    Ok(label)
}

fn limits(tokens: &mut Tokens, options: &mut RuleOptions) -> PfResult<bool> {
    if tokens.eat_word("max-pkt-rate") {
        let limit = positive(tokens, "'max-pkt-rate'")?;
        tokens.expect_sign('/')?;
        options.max_packet_rate = Some(PacketRate { limit, seconds: positive(tokens, "'max-pkt-rate'")? });
    } else if tokens.eat_word("max-pkt-size") {
        options.max_packet_size = Some(number(tokens, "a size", 65_535)?).filter(|size| *size > 0);
    } else if tokens.is_word("probability") {
        once(tokens, &options.probability, "probability")?;
        tokens.advance();
        options.probability = Some(probability(tokens)?);
    } else if tokens.eat_word("rtable") {
        options.rtable = Some(number32(tokens, "the number of a routing table")?);
    } else if tokens.is_word("received-on") || (tokens.is_sign('!') && tokens.second_is("received-on")) {
        let not = tokens.eat_sign('!');
        tokens.expect_word("received-on")?;
        options.received_on = Some(InterfaceTest { not, ..interface(tokens)? });
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// A part of one, or with '%' of a hundred.
fn probability(tokens: &mut Tokens) -> PfResult<Probability> {
    let text = match tokens.kind() {
        TokenKind::Number(number) => number.to_string(),
        TokenKind::Word(text) | TokenKind::Quoted(text) => text.clone(),
        _ => return Err(tokens.unexpected("a probability, such as 20%")),
    };
    let (digits, whole) = text.strip_suffix('%').map_or((text.as_str(), 1.0), |digits| (digits, 100.0));
    let part = digits.parse::<f64>().ok().map(|part| part / whole).filter(|part| (0.0..=1.0).contains(part));
    let invalid = || tokens.invalid(format!("invalid probability {text}"), "write 0% to 100%");
    let part = part.ok_or_else(invalid)?;
    tokens.advance();
    Ok(Probability(((part * f64::from(u32::MAX) + 0.5).floor() as u32).max(1)))
}

fn changes(tokens: &mut Tokens, options: &mut RuleOptions) -> PfResult<bool> {
    if tokens.eat_word("tos") {
        options.tos = Some(type_of_service(tokens)?);
    } else if tokens.eat_word("prio") {
        options.prio = Some(number(tokens, "a priority", 7)?);
    } else if tokens.eat_word("fragment") {
        options.fragment = true;
    } else if tokens.eat_word("allow-opts") {
        options.allow_opts = true;
    } else if tokens.eat_word("once") {
        options.once = true;
    } else if tokens.eat_word("scrub") {
        options.scrub = scrub::in_parentheses(tokens)?;
        options.set_tos = options.scrub.set_tos.take().or(options.set_tos);
    } else if tokens.eat_word("set") {
        sets(tokens, options)?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// `set (prio 3, tos 0x10)`
fn sets(tokens: &mut Tokens, options: &mut RuleOptions) -> PfResult<()> {
    if !tokens.eat_sign('(') {
        return set_one(tokens, options);
    }
    while !tokens.eat_sign(')') {
        set_one(tokens, options)?;
        tokens.eat_sign(',');
    }
    Ok(())
}

fn set_one(tokens: &mut Tokens, options: &mut RuleOptions) -> PfResult<()> {
    if tokens.eat_word("tos") {
        options.set_tos = Some(type_of_service(tokens)?);
        return Ok(());
    }
    tokens.expect_word("prio")?;
    let in_parentheses = tokens.eat_sign('(');
    let first = number(tokens, "a priority", 7)?;
    options.set_prio = Some((first, first));
    if in_parentheses {
        tokens.eat_sign(',');
        options.set_prio = Some((first, number(tokens, "a priority", 7)?));
        tokens.expect_sign(')')?;
    }
    Ok(())
}

fn translation(tokens: &mut Tokens, options: &mut OptionsSyntax) -> PfResult<bool> {
    let place = match tokens.word() {
        Some("nat-to") => &mut options.nat,
        Some("rdr-to") => &mut options.rdr,
        Some("binat-to") => &mut options.binat,
        _ => return Ok(false),
    };
    once(tokens, place, "a translation")?;
    tokens.advance();
    *place = Some(pool(tokens)?);
    Ok(true)
}

fn keeping(tokens: &mut Tokens, options: &mut OptionsSyntax) -> PfResult<bool> {
    if is_late_option_list(tokens, options) {
        options.state = Some(StateSyntax::Keep(state::in_parentheses(tokens)?));
        return Ok(true);
    }
    let keep = tokens.is_word("keep");
    let no = tokens.is_word("no") && tokens.second_is("state");
    if !keep && !no {
        return Ok(false);
    }
    once(tokens, &options.state, "'keep state' or 'no state'")?;
    tokens.advance();
    tokens.expect_word("state")?;
    options.state =
        Some(if keep { StateSyntax::Keep(state::in_parentheses(tokens)?) } else { StateSyntax::No });
    Ok(true)
}

/// pfctl prints `keep state probability 20% (max 5)`, so the options of the state may come later.
fn is_late_option_list(tokens: &Tokens, options: &OptionsSyntax) -> bool {
    let kept = matches!(&options.state, Some(StateSyntax::Keep(state)) if *state == Default::default());
    kept && options.common.probability.is_some() && tokens.is_sign('(')
}
