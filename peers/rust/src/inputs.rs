//! The folder described in peers/README.md: one table, streams of keys, and the expected answers.

use std::cell::Cell;
use std::fmt::Display;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};

/// An address of either family.
pub trait Addr: Copy + Display + FromStr + Send + Sync + 'static {
    const FAMILY: &'static str;
    const BITS: u8;
    /// Reads an address from the bytes of a keys file.
    fn from_key(bytes: &[u8]) -> Self;
}

impl Addr for Ipv4Addr {
    const FAMILY: &'static str = "inet";
    const BITS: u8 = 32;
    fn from_key(bytes: &[u8]) -> Self {
        Ipv4Addr::from_bits(bytes.iter().rev().fold(0, |addr, byte| addr << 8 | u32::from(*byte)))
    }
}

impl Addr for Ipv6Addr {
    const FAMILY: &'static str = "inet6";
    const BITS: u8 = 128;
    fn from_key(bytes: &[u8]) -> Self {
        Ipv6Addr::from_bits(bytes.iter().fold(0, |addr, byte| addr << 8 | u128::from(*byte)))
    }
}

pub struct Route<A> {
    pub addr: A,
    pub len: u8,
    pub next_hop: u16,
}

pub struct Stream<A> {
    pub name: String,
    pub keys: Vec<A>,
    pub answers: Vec<u16>,
    /// The key that the next slice begins with.
    pub at: Cell<usize>,
}

/// The routes of one family.
pub fn routes<A: Addr>(folder: &Path) -> Result<Vec<Route<A>>> {
    let path = folder.join("table.txt");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let lines = text.lines().enumerate().filter(|(_, line)| line.contains(':') == (A::BITS == 128));
    let place = |number| format!("{}:{}", path.display(), number + 1);
    lines.map(|(number, line)| route(line).with_context(|| place(number))).collect()
}

fn route<A: Addr>(line: &str) -> Result<Route<A>> {
    let parts = line.split_once('/').and_then(|(addr, rest)| Some((addr, rest.split_once(' ')?)));
    let (addr, (len, next_hop)) = parts.context("want: PREFIX NEXT-HOP")?;
    let addr = addr.parse().ok().with_context(|| format!("{addr} is not an address"))?;
    let len = len.parse().ok().filter(|len| *len <= A::BITS).context("the prefix length")?;
    let next_hop = next_hop.parse().ok().filter(|hop| *hop > 0).context("want a next hop of 1 to 65535")?;
    Ok(Route { addr, len, next_hop })
}

/// The streams of one family, by name.
pub fn streams<A: Addr>(folder: &Path) -> Result<Vec<Stream<A>>> {
    let suffix = format!(".{}.keys", A::FAMILY);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        names.extend(name.strip_suffix(&suffix).map(str::to_owned));
    }
    names.sort();
    names.into_iter().map(|name| stream(folder, name)).collect()
}

fn stream<A: Addr>(folder: &Path, name: String) -> Result<Stream<A>> {
    let read = |what: &str| {
        let path = folder.join(format!("{name}.{}.{what}", A::FAMILY));
        fs::read(&path).with_context(|| path.display().to_string())
    };
    let (keys, answers) = (read("keys")?, read("answers")?);
    let bytes = usize::from(A::BITS / 8);
    ensure!(!keys.is_empty() && keys.len() % bytes == 0, "stream {name}: the keys are empty or truncated");
    if answers.len() / 2 != keys.len() / bytes || answers.len() % 2 != 0 {
        bail!("stream {name}: {} answers for {} keys", answers.len() / 2, keys.len() / bytes);
    }
    let keys = keys.chunks(bytes).map(A::from_key).collect();
    let answers = answers.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    Ok(Stream { name, keys, answers, at: Cell::new(0) })
}
