//! `antispoof`

use crate::pf::error::PfResult;
use crate::pf::parse::filter_options::common;
use crate::pf::parse::heads::{family, interface_name, log_and_quick};
use crate::pf::parse::tokens::Tokens;
use crate::pf::rule::RuleOptions;
use crate::pf::syntax::{AntispoofInterface, AntispoofSyntax};

pub fn antispoof(tokens: &mut Tokens) -> PfResult<AntispoofSyntax> {
    let position = tokens.position();
    tokens.expect_word("antispoof")?;
    let (log, quick) = log_and_quick(tokens)?;
    tokens.expect_word("for")?;
    let interfaces = tokens.list(interface)?;
    let family = family(tokens);
    let mut options = RuleOptions::default();
    while common(tokens, &mut options)? {}
    Ok(AntispoofSyntax { position, log, quick, interfaces, family, options })
}

fn interface(tokens: &mut Tokens) -> PfResult<AntispoofInterface> {
    let position = tokens.position();
    let dynamic = tokens.eat_sign('(');
    let name = interface_name(tokens)?;
    if dynamic {
        tokens.expect_sign(')')?;
    }
    Ok(AntispoofInterface { position, name, dynamic })
}
