//! What `block` answers.

use crate::address::Family;
use crate::pf::error::PfResult;
use crate::pf::names::icmp;
use crate::pf::parse::numbers::number;
use crate::pf::parse::tokens::Tokens;
use crate::pf::rule::BlockReply;

/// ICMP type 3 and ICMPv6 type 1: the destination is unreachable.
pub const UNREACHABLE: u8 = 3;
pub const UNREACHABLE6: u8 = 1;

/// Codes of these types: no process listens on the port.
pub const PORT: u8 = 3;
pub const PORT6: u8 = 4;

pub fn reply(tokens: &mut Tokens) -> PfResult<Option<BlockReply>> {
    let reply = match tokens.word() {
        Some("drop") => BlockReply::Drop,
        Some("return") => BlockReply::Return,
        Some("return-rst") => return rst(tokens).map(Some),
        Some("return-icmp") => return icmp_codes(tokens).map(Some),
        Some("return-icmp6") => return icmp6_code(tokens).map(Some),
        _ => return Ok(None),
    };
    tokens.advance();
    Ok(Some(reply))
}

fn rst(tokens: &mut Tokens) -> PfResult<BlockReply> {
    tokens.advance();
    if !tokens.eat_sign('(') {
        return Ok(BlockReply::Rst { ttl: 0 });
    }
    tokens.expect_word("ttl")?;
    let ttl = number(tokens, "a TTL", 255)?;
    tokens.expect_sign(')')?;
    Ok(BlockReply::Rst { ttl })
}

fn icmp_codes(tokens: &mut Tokens) -> PfResult<BlockReply> {
    tokens.advance();
    if !tokens.eat_sign('(') {
        return Ok(BlockReply::Icmp { code: PORT, code6: PORT6 });
    }
    let code = code(tokens, UNREACHABLE, Family::Inet)?;
    tokens.eat_sign(',');
    let code6 = if tokens.is_sign(')') { PORT6 } else { self::code(tokens, UNREACHABLE6, Family::Inet6)? };
    tokens.expect_sign(')')?;
    Ok(BlockReply::Icmp { code, code6 })
}

fn icmp6_code(tokens: &mut Tokens) -> PfResult<BlockReply> {
    tokens.advance();
    if !tokens.eat_sign('(') {
        return Ok(BlockReply::Icmp { code: PORT, code6: PORT6 });
    }
    let code6 = code(tokens, UNREACHABLE6, Family::Inet6)?;
    tokens.expect_sign(')')?;
    Ok(BlockReply::Icmp { code: PORT, code6 })
}

/// The name or number of a code of messages of a type.
pub fn code(tokens: &mut Tokens, kind: u8, family: Family) -> PfResult<u8> {
    let named = tokens.word().and_then(|word| icmp::code(word, kind, family));
    match named {
        Some(code) => {
            tokens.advance();
            Ok(code)
        }
        None => number(tokens, "an ICMP code's name or number", 255),
    }
}
