//! Output of equilibrium, which searches the load at which a router forwards what it receives.

use crate::error::{LineError, Problem, at, whole};

#[derive(Debug, Clone, PartialEq)]
pub struct Equilibrium {
    pub rate: f64,
    pub highest: f64,
    /// `Mb/s` or `Kpps`.
    pub unit: String,
}

const RESULT: &str = "Estimated Equilibrium Ethernet throughput=";

/// Whether a text looks as if equilibrium had written it.
pub fn is_equilibrium(text: &str) -> bool {
    text.contains("Offering load") || text.contains("offering load") || text.contains(RESULT)
}

pub fn parse(text: &str) -> Result<Equilibrium, LineError> {
    whole(text)?;
    let end = text.lines().count();
    if !is_equilibrium(text) {
        return at(1, Problem::Foreign { expected: "output of equilibrium" });
    }
    let found =
        text.lines().enumerate().find_map(|(at, line)| Some((at + 1, line.trim().strip_prefix(RESULT)?)));
    let Some((line, result)) = found else { return at(end, Problem::CutOff) };
    match result.split_whitespace().collect::<Vec<_>>()[..] {
        [rate, unit, "(maximum", "value", "seen:", highest, _] => {
            Ok(Equilibrium { rate: figure(rate, line)?, highest: figure(highest, line)?, unit: unit.into() })
        }
        _ => at(line, Problem::CutOff),
    }
}

fn figure(token: &str, line: usize) -> Result<f64, LineError> {
    let parsed = token.parse().ok().filter(|rate: &f64| rate.is_finite());
    parsed.ok_or_else(|| LineError { line, problem: Problem::Number { token: token.into() } })
}
