//! What scrubbing changes.

use crate::pf::error::{PfError, PfResult};
use crate::pf::parse::numbers::{number, type_of_service};
use crate::pf::parse::tokens::Tokens;
use crate::pf::rule::ScrubOptions;

/// Reads one option; `false` if none stands here.
pub fn option(tokens: &mut Tokens, options: &mut ScrubOptions) -> PfResult<bool> {
    if tokens.eat_word("no-df") {
        options.no_df = true;
    } else if tokens.eat_word("random-id") {
        options.random_id = true;
    } else if tokens.eat_word("min-ttl") {
        options.min_ttl = Some(number(tokens, "a TTL", 255)?).filter(|ttl| *ttl > 0);
    } else if tokens.eat_word("max-mss") {
        options.max_mss = Some(number(tokens, "a segment size", 65_535)?).filter(|size| *size > 0);
    } else if tokens.eat_word("set-tos") {
        options.set_tos = Some(type_of_service(tokens)?);
    } else {
        return reassembly(tokens, options);
    }
    Ok(true)
}

fn reassembly(tokens: &mut Tokens, options: &mut ScrubOptions) -> PfResult<bool> {
    if tokens.eat_word("reassemble") {
        tokens.expect_word("tcp")?;
        options.reassemble_tcp = true;
    } else if tokens.eat_word("fragment") {
        options.keep_fragments = tokens.eat_word("no");
        let position = tokens.position();
        if !tokens.eat_word("reassemble") {
            let problem = "fragments are reassembled or not";
            return Err(PfError::invalid(
                &position,
                problem,
                "write 'fragment reassemble' or 'fragment no reassemble'",
            ));
        }
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// `scrub (…)` of a match or pass rule.
pub fn in_parentheses(tokens: &mut Tokens) -> PfResult<ScrubOptions> {
    let mut options = ScrubOptions::default();
    tokens.expect_sign('(')?;
    while !tokens.eat_sign(')') {
        if !option(tokens, &mut options)? {
            return Err(tokens.unexpected("a scrub option or ')'"));
        }
        tokens.eat_sign(',');
    }
    Ok(options)
}
