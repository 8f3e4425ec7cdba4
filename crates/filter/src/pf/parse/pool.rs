//! The addresses of a translation.

use crate::pf::error::{PfError, PfResult};
use crate::pf::parse::addresses;
use crate::pf::parse::numbers::{PortWord, any_base, port_word};
use crate::pf::parse::tokens::Tokens;
use crate::pf::pool::{MapE, PoolChoice};
use crate::pf::syntax::{HostKind, HostSyntax, PoolPortSyntax, PoolSyntax};

/// What follows `->`, `nat-to`, `rdr-to` or `binat-to`.
pub fn pool(tokens: &mut Tokens) -> PfResult<PoolSyntax> {
    let position = tokens.position();
    let hosts = tokens.list(pool_host)?;
    let port = if tokens.eat_word("port") { Some(pool_port(tokens)?) } else { None };
    let mut pool =
        PoolSyntax { position, hosts, port, choice: None, static_port: false, sticky: false, map_e: None };
    while option(tokens, &mut pool)? {}
    Ok(pool)
}

fn pool_host(tokens: &mut Tokens) -> PfResult<HostSyntax> {
    let host = addresses::host(tokens)?;
    let no_address =
        host.not || matches!(host.kind, HostKind::Any | HostKind::NoRoute | HostKind::UrpfFailed);
    if no_address {
        return Err(PfError::invalid(
            &host.position,
            "this is no address to translate to",
            "name an address",
        ));
    }
    Ok(host)
}

fn pool_port(tokens: &mut Tokens) -> PfResult<PoolPortSyntax> {
    let position = tokens.position();
    match port_word(tokens)? {
        PortWord::One(port) => Ok(PoolPortSyntax::One(port)),
        PortWord::From(port) => Ok(PoolPortSyntax::From(port)),
        PortWord::Two(first, last) if first == last => Ok(PoolPortSyntax::One(first)),
        PortWord::Two(first, last) if first < last => Ok(PoolPortSyntax::Range(first, last)),
        PortWord::Two(..) => {
            Err(PfError::invalid(&position, "invalid port range", "write the lower port first"))
        }
    }
}

fn option(tokens: &mut Tokens, pool: &mut PoolSyntax) -> PfResult<bool> {
    let choice = match tokens.word() {
        Some("bitmask") => PoolChoice::Bitmask,
        Some("random") => PoolChoice::Random,
        Some("round-robin") => PoolChoice::RoundRobin,
        Some("source-hash") => PoolChoice::SourceHash(None),
        _ => return other_option(tokens, pool),
    };
    if pool.choice.is_some() {
        return Err(tokens.invalid("pool type cannot be redefined", "keep one of the two"));
    }
    tokens.advance();
    pool.choice = Some(if choice == PoolChoice::SourceHash(None) { source_hash(tokens)? } else { choice });
    Ok(true)
}

fn other_option(tokens: &mut Tokens, pool: &mut PoolSyntax) -> PfResult<bool> {
    if tokens.eat_word("static-port") {
        pool.static_port = true;
    } else if tokens.eat_word("sticky-address") {
        pool.sticky = true;
    } else if tokens.eat_word("map-e-portset") {
        pool.map_e = Some(map_e(tokens)?);
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// The key of `source-hash`: 32 hexadecimal digits, or none.
fn source_hash(tokens: &mut Tokens) -> PfResult<PoolChoice> {
    let position = tokens.position();
    let Ok(key) = tokens.text("a key") else {
        return Ok(PoolChoice::SourceHash(None));
    };
    let digits = key.strip_prefix("0x").filter(|digits| digits.len() == 32);
    let number = digits.and_then(|digits| u128::from_str_radix(digits, 16).ok());
    let no_key =
        || PfError::invalid(&position, format!("{key} is no key"), "write 0x and 32 hexadecimal digits");
    number.map(|key| PoolChoice::SourceHash(Some(key))).ok_or_else(no_key)
}

fn map_e(tokens: &mut Tokens) -> PfResult<MapE> {
    let position = tokens.position();
    let offset = any_base(tokens, "the offset of the PSID", 15)?;
    tokens.expect_sign('/')?;
    let length = any_base(tokens, "the length of the PSID", 15)?;
    tokens.expect_sign('/')?;
    let id = any_base(tokens, "the PSID", 65_535)?;
    if offset == 0 || length == 0 || offset + length > 16 {
        let problem = "invalid MAP-E PSID offset or length";
        return Err(PfError::invalid(
            &position,
            problem,
            "write offset/length/PSID with 1 to 15 bits, at most 16 together",
        ));
    }
    Ok(MapE { offset: offset as u8, length: length as u8, id: id as u16 })
}
