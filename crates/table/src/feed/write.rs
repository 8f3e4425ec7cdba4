//! Writes a table for other programs: for BIRD, for `ip -batch`, or as text that [`text`](super::text) reads back.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::addr::{Address, Family};
use crate::nexthop::Target;
use crate::rib::Rib;
use crate::table::Table;

use super::text::UNREACHABLE;

/// The format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// One route in a line, as [`text`](super::text) describes.
    Text,
    /// Two `protocol static` blocks for an `include` in the configuration of BIRD 2.
    Bird(Numbers),
    /// Lines for `ip -batch`.
    IpBatch(Numbers),
}

/// How to write a next hop that is only a number where an address is needed.
///
/// BIRD accepts a route through a gateway only while it has an interface in the network of the gateway. So the choice
/// is between a table that forwards in a test bed and one that is complete on any machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbers {
    /// Number 0 becomes the first host address, 1 the second and so on, of the networks set aside for benchmarks:
    /// 198.18.0.0/15 (RFC 2544) and 2001:2::/48 (RFC 5180). Different next hops stay different; the machine needs an
    /// address in these networks.
    TestAddresses,
    /// The route is a black hole. It loads on any machine, for table sizes, BGP feeds and route servers.
    #[default]
    Blackhole,
}

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Writing to the output failed.
    #[error("cannot write the table: {0}")]
    Io(#[from] io::Error),
    /// 198.18.0.0/15 has no address for this number.
    #[error(
        "next hop number {0} has no address in 198.18.0.0/15, which ends at number 131069; write black holes instead"
    )]
    NoAddress(u32),
    /// The route goes to a next-hop group, but the formats have one next hop for a route.
    #[error(
        "{prefix} goes to a next-hop group, which none of the formats can express; give it a plain next hop"
    )]
    Group {
        /// The route.
        prefix: String,
    },
}

/// Writes every route once, IPv4 first, in order.
///
/// ```
/// use fullview_table::feed::write::{Dialect, write};
/// use fullview_table::{Table, Target};
///
/// let mut table = Table::default();
/// let hop = table.next_hops.intern(Target::Gateway("192.0.2.1".parse()?))?;
/// table.inet.announce("198.18.0.0/15".parse()?, hop);
/// let mut text = Vec::new();
/// write(&table, Dialect::Text, &mut text)?;
/// assert_eq!(text, b"198.18.0.0/15 192.0.2.1\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A [`WriteError`] if `out` fails or a next hop cannot be expressed; the output is incomplete then.
pub fn write(table: &Table, dialect: Dialect, out: &mut impl Write) -> Result<(), WriteError> {
    family(table, &table.inet, dialect, out)?;
    family(table, &table.inet6, dialect, out)?;
    Ok(out.flush()?)
}

fn family<A: Address>(
    table: &Table,
    rib: &Rib<A>,
    dialect: Dialect,
    out: &mut impl Write,
) -> Result<(), WriteError> {
    let bird = matches!(dialect, Dialect::Bird(_)) && !rib.is_empty();
    if bird {
        writeln!(out, "{}", bird_head(A::FAMILY))?;
    }
    for route in rib.iter() {
        let target = table.next_hops.target(route.next_hop);
        if let Some(Target::Group(_)) = target {
            return Err(WriteError::Group { prefix: route.prefix.to_string() });
        }
        match dialect {
            Dialect::Text => text(route.prefix, target, out)?,
            Dialect::Bird(numbers) => bird_route(route.prefix, exit::<A>(target, numbers)?, out)?,
            Dialect::IpBatch(numbers) => ip_route(route.prefix, exit::<A>(target, numbers)?, out)?,
        }
    }
    if bird {
        writeln!(out, "}}")?;
    }
    Ok(())
}

/// The destination of packets, in the terms of the other programs.
enum Exit {
    Gateway(IpAddr),
    Blackhole,
    Unreachable,
}

fn exit<A: Address>(target: Option<Target>, numbers: Numbers) -> Result<Exit, WriteError> {
    match (target, numbers) {
        (None | Some(Target::Group(_)), _) => Ok(Exit::Unreachable),
        (Some(Target::Gateway(ip)), _) => Ok(Exit::Gateway(ip)),
        (Some(Target::Number(_)), Numbers::Blackhole) => Ok(Exit::Blackhole),
        (Some(Target::Number(n)), Numbers::TestAddresses) => test_address(A::FAMILY, n).map(Exit::Gateway),
    }
}

fn test_address(family: Family, number: u32) -> Result<IpAddr, WriteError> {
    match family {
        // The last address of the network is its broadcast address.
        Family::Inet if number > 131_069 => Err(WriteError::NoAddress(number)),
        Family::Inet => Ok(Ipv4Addr::from_bits(0xc612_0001 + number).into()),
        Family::Inet6 => Ok(Ipv6Addr::from_bits((0x2001_0002 << 96) + u128::from(number) + 1).into()),
    }
}

fn text(prefix: impl std::fmt::Display, target: Option<Target>, out: &mut impl Write) -> io::Result<()> {
    match target {
        Some(target) => writeln!(out, "{prefix} {target}"),
        None => writeln!(out, "{prefix} {UNREACHABLE}"),
    }
}

fn bird_head(family: Family) -> &'static str {
    match family {
        Family::Inet => "protocol static fullview4 {\n\tipv4;",
        Family::Inet6 => "protocol static fullview6 {\n\tipv6;",
    }
}

fn bird_route(prefix: impl std::fmt::Display, exit: Exit, out: &mut impl Write) -> io::Result<()> {
    match exit {
        Exit::Gateway(ip) => writeln!(out, "\troute {prefix} via {ip};"),
        Exit::Blackhole => writeln!(out, "\troute {prefix} blackhole;"),
        Exit::Unreachable => writeln!(out, "\troute {prefix} unreachable;"),
    }
}

fn ip_route<A: Address>(
    prefix: crate::prefix::Prefix<A>,
    exit: Exit,
    out: &mut impl Write,
) -> io::Result<()> {
    match exit {
        // The family must be named if it is not that of the prefix (RFC 8950).
        Exit::Gateway(ip) if ip.is_ipv6() && A::BITS == 32 => {
            writeln!(out, "route add {prefix} via inet6 {ip}")
        }
        Exit::Gateway(ip) => writeln!(out, "route add {prefix} via {ip}"),
        Exit::Blackhole => writeln!(out, "route add blackhole {prefix}"),
        Exit::Unreachable => writeln!(out, "route add unreachable {prefix}"),
    }
}
