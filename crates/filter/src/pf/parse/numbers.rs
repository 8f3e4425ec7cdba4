//! Numbers, ports, protocols and owners of sockets.

use crate::pf::address::{NumberTest, OwnerTest, PortTest};
use crate::pf::error::{PfError, PfResult, Position};
use crate::pf::names::{protocols, services, tos};
use crate::pf::parse::tokens::Tokens;
use crate::pf::token::TokenKind;

/// A number from zero to a limit.
pub fn number<T: TryFrom<u64>>(tokens: &mut Tokens, what: &str, largest: u64) -> PfResult<T> {
    let TokenKind::Number(number) = *tokens.kind() else {
        return Err(tokens.unexpected(what));
    };
    let fits = Some(number).filter(|number| *number <= largest).and_then(|number| T::try_from(number).ok());
    let too_large =
        || tokens.invalid(format!("{number} is too large for {what}"), format!("write at most {largest}"));
    let number = fits.ok_or_else(too_large)?;
    tokens.advance();
    Ok(number)
}

pub fn number32(tokens: &mut Tokens, what: &str) -> PfResult<u32> {
    number(tokens, what, u32::MAX.into())
}

/// A number that is not zero.
pub fn positive(tokens: &mut Tokens, what: &str) -> PfResult<u32> {
    let position = tokens.position();
    match number32(tokens, what)? {
        0 => Err(PfError::invalid(&position, format!("{what} must be > 0"), "write 1 or more")),
        number => Ok(number),
    }
}

/// A number in decimal digits, or in hexadecimal digits after `0x`.
pub fn any_base(tokens: &mut Tokens, what: &str, largest: u64) -> PfResult<u64> {
    let hexadecimal = tokens.word().and_then(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    let Some(value) = hexadecimal else {
        return number(tokens, what, largest);
    };
    if value > largest {
        return Err(
            tokens.invalid(format!("{value} is too large for {what}"), format!("write at most {largest}"))
        );
    }
    tokens.advance();
    Ok(value)
}

pub fn protocol(tokens: &mut Tokens) -> PfResult<u8> {
    let named = tokens.word().and_then(protocols::number);
    if let Some(number) = named {
        tokens.advance();
        return Ok(number);
    }
    let position = tokens.position();
    match number(tokens, "a protocol's name or number", 255)? {
        0 => Err(PfError::invalid(
            &position,
            "protocol 0 cannot be used",
            "write 1 to 255, or leave out 'proto'",
        )),
        number => Ok(number),
    }
}

pub fn type_of_service(tokens: &mut Tokens) -> PfResult<u8> {
    let named = tokens.word().and_then(tos::value);
    if let Some(value) = named {
        tokens.advance();
        return Ok(value);
    }
    number(tokens, "a value of the TOS byte, such as 0x10 or lowdelay", 255)
}

/// A port, or two with a colon between them.
#[derive(Debug, Clone, Copy)]
pub enum PortWord {
    One(u16),
    Two(u16, u16),
    /// `80:*`
    From(u16),
}

pub fn port_word(tokens: &mut Tokens) -> PfResult<PortWord> {
    let position = tokens.position();
    if let TokenKind::Number(_) = tokens.kind() {
        return number(tokens, "a port", 65_535).map(PortWord::One);
    }
    let word = tokens.text("a port")?;
    let Some((first, last)) = word.split_once(':') else {
        return service(&word, &position).map(PortWord::One);
    };
    let first = service(first, &position)?;
    match last {
        "*" => Ok(PortWord::From(first)),
        last => Ok(PortWord::Two(first, service(last, &position)?)),
    }
}

fn service(name: &str, position: &Position) -> PfResult<u16> {
    let known = name.parse().ok().or_else(|| services::port(name));
    known.ok_or_else(|| {
        let problem = format!("unknown port {name}");
        PfError::invalid(
            position,
            problem,
            "write a number from 0 to 65535, or a name of docs/reference/filter.md",
        )
    })
}

pub fn port_test(tokens: &mut Tokens) -> PfResult<PortTest> {
    test(tokens, |tokens| {
        let position = tokens.position();
        match port_word(tokens)? {
            PortWord::One(port) => Ok(Operand::One(port)),
            PortWord::Two(first, last) => port_range(first, last, &position),
            PortWord::From(_) => {
                Err(PfError::invalid(&position, "a range needs two ports", "write first:last"))
            }
        }
    })
}

fn port_range(first: u16, last: u16, position: &Position) -> PfResult<Operand<u16>> {
    match first.cmp(&last) {
        std::cmp::Ordering::Less => Ok(Operand::Range(first, last)),
        std::cmp::Ordering::Equal => Ok(Operand::One(first)),
        std::cmp::Ordering::Greater => Err(PfError::invalid(
            position,
            format!("invalid port range {first}:{last}"),
            "write the lower port first",
        )),
    }
}

/// The number of a user or group, or `unknown`.
pub fn owner_test(tokens: &mut Tokens) -> PfResult<OwnerTest> {
    let position = tokens.position();
    let test = test(tokens, |tokens| owner(tokens).map(Operand::One))?;
    let unknown = match test {
        NumberTest::Equal(_) | NumberTest::NotEqual(_) => false,
        NumberTest::Less(one) | NumberTest::LessOrEqual(one) => one.is_none(),
        NumberTest::Greater(one) | NumberTest::GreaterOrEqual(one) => one.is_none(),
        NumberTest::Range(low, high) | NumberTest::Inside(low, high) | NumberTest::Outside(low, high) => {
            low.is_none() || high.is_none()
        }
    };
    if unknown {
        return Err(PfError::invalid(
            &position,
            "'unknown' is no number to compare with",
            "write = unknown or != unknown",
        ));
    }
    Ok(test)
}

fn owner(tokens: &mut Tokens) -> PfResult<Option<u32>> {
    if tokens.eat_word("unknown") {
        return Ok(None);
    }
    if let Some(name) = tokens.word() {
        return Err(
            tokens.invalid(format!("unknown user or group {name}"), "write its number, as id(1) shows it")
        );
    }
    number(tokens, "the number of a user or group", u64::from(u32::MAX) - 1).map(Some)
}

/// What an operator is applied to.
enum Operand<T> {
    One(T),
    Range(T, T),
}

fn test<T>(
    tokens: &mut Tokens,
    mut operand: impl FnMut(&mut Tokens) -> PfResult<Operand<T>>,
) -> PfResult<NumberTest<T>> {
    if let Some(operator) = unary(tokens) {
        let position = tokens.position();
        return single(operand(tokens)?, &position).map(operator);
    }
    let position = tokens.position();
    let first = operand(tokens)?;
    let binary: fn(T, T) -> NumberTest<T> = match tokens.kind() {
        TokenKind::Inside => NumberTest::Inside,
        TokenKind::Outside => NumberTest::Outside,
        _ => return Ok(plain(first)),
    };
    tokens.advance();
    let last = operand(tokens)?;
    Ok(binary(single(first, &position)?, single(last, &position)?))
}

fn plain<T>(operand: Operand<T>) -> NumberTest<T> {
    match operand {
        Operand::One(number) => NumberTest::Equal(number),
        Operand::Range(first, last) => NumberTest::Range(first, last),
    }
}

fn single<T>(operand: Operand<T>, position: &Position) -> PfResult<T> {
    match operand {
        Operand::One(number) => Ok(number),
        Operand::Range(..) => Err(PfError::invalid(
            position,
            "':' cannot be used with another operator",
            "write one of the two",
        )),
    }
}

/// An operator with one operand, if one stands here.
fn unary<T>(tokens: &mut Tokens) -> Option<fn(T) -> NumberTest<T>> {
    let with_equal = tokens.second_is_sign('=');
    let (operator, signs): (fn(T) -> NumberTest<T>, usize) = match (tokens.kind(), with_equal) {
        (TokenKind::Sign('='), _) => (NumberTest::Equal, 1),
        (TokenKind::Sign('!'), true) => (NumberTest::NotEqual, 2),
        (TokenKind::Sign('<'), true) => (NumberTest::LessOrEqual, 2),
        (TokenKind::Sign('<'), false) => (NumberTest::Less, 1),
        (TokenKind::Sign('>'), true) => (NumberTest::GreaterOrEqual, 2),
        (TokenKind::Sign('>'), false) => (NumberTest::Greater, 1),
        _ => return None,
    };
    (0..signs).for_each(|_| tokens.advance());
    Some(operator)
}
