//! The addresses of a translation.

use std::fmt::{Display, Formatter, Result};

use crate::pf::address::PfAddress;
use crate::pf::pool::{PfPool, PoolChoice, PoolPorts};

impl Display for PfPool {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        addresses(out, &self.addresses)?;
        match self.ports {
            PoolPorts::Range(first, last) if first == last => write!(out, " port {first}")?,
            PoolPorts::Range(first, last) => write!(out, " port {first}:{last}")?,
            PoolPorts::Default | PoolPorts::Keep => {}
        }
        self.choice.map_or(Ok(()), |choice| write!(out, " {choice}"))?;
        out.write_str(if self.sticky { " sticky-address" } else { "" })?;
        out.write_str(if self.ports == PoolPorts::Keep { " static-port" } else { "" })?;
        self.map_e
            .map_or(Ok(()), |set| write!(out, " map-e-portset {}/{}/{}", set.offset, set.length, set.id))
    }
}

fn addresses(out: &mut Formatter<'_>, addresses: &[PfAddress]) -> Result {
    if let [one] = addresses {
        return one.fmt(out);
    }
    let list: Vec<String> = addresses.iter().map(PfAddress::to_string).collect();
    write!(out, "{{ {} }}", list.join(", "))
}

impl Display for PoolChoice {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            PoolChoice::Bitmask => out.write_str("bitmask"),
            PoolChoice::Random => out.write_str("random"),
            PoolChoice::SourceHash(None) => out.write_str("source-hash"),
            PoolChoice::SourceHash(Some(key)) => write!(out, "source-hash {key:#034x}"),
            PoolChoice::RoundRobin => out.write_str("round-robin"),
        }
    }
}
