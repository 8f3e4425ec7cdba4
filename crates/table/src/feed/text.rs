//! Tables as text, one route in a line.
//!
//! ```text
//! # prefix            next hop (optional)
//! 198.18.0.0/16       192.0.2.1
//! 198.19.0.0/16       7
//! 198.19.1.0/24       unreachable
//! 2001:2::/48
//! ```
//!
//! Fields are separated by blanks or tabs. The next hop is an address, a number, or `unreachable`, which makes a hole
//! in a shorter prefix; [`NextHopModel`](super::NextHopModel) assigns a next hop to routes without one. `#` starts a
//! comment, empty lines are ignored, lines may end in CR LF, and IPv4 and IPv6 routes may come in any order. A prefix
//! must be canonical and may occur once.

use std::io::BufRead;
use std::net::IpAddr;

use crate::nexthop::Target;

use super::builder::{TableBuilder, Via};
use super::error::{Fault, Located};
use super::lines::Lines;

/// The next hop of a route whose packets are dropped.
pub(super) const UNREACHABLE: &str = "unreachable";

pub(super) fn read_into(input: impl BufRead, builder: &mut TableBuilder) -> Result<(), Located> {
    let mut lines = Lines::new(input);
    while let Some(line) = lines.next_line()? {
        route(line.content, line.number, builder).map_err(|fault| fault.at_line(line.number))?;
    }
    builder.report.records = lines.count();
    Ok(())
}

fn route(content: &str, line: u64, builder: &mut TableBuilder) -> Result<(), Fault> {
    let mut fields = content.split_ascii_whitespace();
    let prefix = fields.next().unwrap_or_default();
    let via = fields.next().map_or(Ok(Via::Unspecified), via)?;
    if let Some(surplus) = fields.next() {
        return Err(Fault::Surplus(surplus.into()));
    }
    if prefix.contains(':') {
        builder.add::<u128>(prefix.parse()?, via, line)
    } else {
        builder.add::<u32>(prefix.parse()?, via, line)
    }
}

fn via(text: &str) -> Result<Via, Fault> {
    if text == UNREACHABLE {
        return Ok(Via::Unreachable);
    }
    target(text).map(Via::Target)
}

/// Parses a next hop. Digits only are a number; `str::parse` would also accept a sign.
pub(super) fn target(text: &str) -> Result<Target, Fault> {
    let error = || Fault::NextHop(text.into());
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map(Target::Number).map_err(|_| error());
    }
    text.parse::<IpAddr>().map(Target::Gateway).map_err(|_| error())
}
