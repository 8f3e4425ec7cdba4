//! `keep state` and its options.

use crate::pf::error::{PfError, PfResult, Position};
use crate::pf::parse::addresses::table_name;
use crate::pf::parse::numbers::{number32, positive};
use crate::pf::parse::tokens::Tokens;
use crate::pf::state_options::{
    ConnectionRate, Flush, Overload, PfStateOptions, SourceTrack, StateBinding, StateTimeout,
};

/// What may follow `keep state`: options in parentheses.
pub fn in_parentheses(tokens: &mut Tokens) -> PfResult<PfStateOptions> {
    let mut options = PfStateOptions::default();
    if tokens.eat_sign('(') {
        while !tokens.eat_sign(')') {
            option(tokens, &mut options)?;
            tokens.eat_sign(',');
        }
    }
    Ok(options)
}

/// The options after `set state-defaults`.
pub fn defaults(tokens: &mut Tokens) -> PfResult<PfStateOptions> {
    let mut options = PfStateOptions::default();
    while !tokens.at_end() {
        option(tokens, &mut options)?;
        tokens.eat_sign(',');
    }
    Ok(options)
}

fn option(tokens: &mut Tokens, options: &mut PfStateOptions) -> PfResult<()> {
    let position = tokens.position();
    let word = tokens.word().ok_or_else(|| tokens.unexpected("a state option"))?.to_owned();
    tokens.advance();
    let repeated = !flag(&word, options) && !number_option(tokens, &word, options, &position)?;
    if repeated {
        return Err(PfError::invalid(
            &position,
            format!("state option '{word}' multiple definitions"),
            "keep one",
        ));
    }
    Ok(())
}

/// Sets what has no value yet; `false` if it has one.
fn set<T>(place: &mut Option<T>, value: T) -> bool {
    place.is_none() && place.replace(value).is_none()
}

fn raise(place: &mut bool) -> bool {
    !std::mem::replace(place, true)
}

/// Options without a value.
fn flag(word: &str, options: &mut PfStateOptions) -> bool {
    match word {
        "no-sync" => raise(&mut options.no_sync),
        "sloppy" => raise(&mut options.sloppy),
        "pflow" => raise(&mut options.pflow),
        "allow-related" => raise(&mut options.allow_related),
        "if-bound" => set(&mut options.binding, StateBinding::Interface),
        "floating" => set(&mut options.binding, StateBinding::Floating),
        _ => false,
    }
}

fn number_option(
    tokens: &mut Tokens,
    word: &str,
    options: &mut PfStateOptions,
    at: &Position,
) -> PfResult<bool> {
    Ok(match word {
        "no-sync" | "sloppy" | "pflow" | "allow-related" | "if-bound" | "floating" => false,
        "max" => set(&mut options.max, positive(tokens, "'max'")?),
        "max-src-states" => set(&mut options.max_src_states, positive(tokens, "'max-src-states'")?),
        "max-src-conn" => set(&mut options.max_src_conn, positive(tokens, "'max-src-conn'")?),
        "max-src-nodes" => set(&mut options.max_src_nodes, positive(tokens, "'max-src-nodes'")?),
        "max-src-conn-rate" => set(&mut options.max_src_conn_rate, connection_rate(tokens)?),
        "overload" => set(&mut options.overload, overload(tokens)?),
        "source-track" => set(&mut options.source_track, source_track(tokens)),
        name => timeout(tokens, name, options, at)?,
    })
}

fn connection_rate(tokens: &mut Tokens) -> PfResult<ConnectionRate> {
    let limit = positive(tokens, "'max-src-conn-rate'")?;
    tokens.expect_sign('/')?;
    Ok(ConnectionRate { limit, seconds: positive(tokens, "'max-src-conn-rate'")? })
}

fn overload(tokens: &mut Tokens) -> PfResult<Overload> {
    let table = table_name(tokens)?;
    let flush = match (tokens.eat_word("flush"), tokens.eat_word("global")) {
        (false, false) => Flush::None,
        (true, false) => Flush::OfRule,
        (true, true) => Flush::Global,
        (false, true) => return Err(tokens.invalid("'global' without 'flush'", "write 'flush global'")),
    };
    Ok(Overload { table, flush })
}

fn source_track(tokens: &mut Tokens) -> SourceTrack {
    if tokens.eat_word("rule") {
        return SourceTrack::Rule;
    }
    tokens.eat_word("global");
    SourceTrack::Global
}

fn timeout(tokens: &mut Tokens, name: &str, options: &mut PfStateOptions, at: &Position) -> PfResult<bool> {
    let known = StateTimeout::named(name).filter(|timeout| timeout.is_of_states());
    let unknown = || {
        PfError::syntax(at, format!("'{name}'"), "a state option or the name of a timeout, such as tcp.first")
    };
    let timeout = known.ok_or_else(unknown)?;
    let seconds = number32(tokens, "seconds")?;
    Ok(options.timeouts.insert(timeout, seconds).is_none())
}
