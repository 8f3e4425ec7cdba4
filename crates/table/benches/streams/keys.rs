//! The streams of addresses; a table always gives the same streams.

use anyhow::bail;
use fullview_table::{Address, Family, Prefix, Rib, probe};

/// Flows in the stream of few flows.
const FLOWS: usize = 5_000;

/// How addresses are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Uniform,
    InPrefix,
    Flows,
    Zipf,
}

impl Stream {
    /// All streams of a family, with the letters that the documentation uses for them.
    fn all(family: Family) -> &'static [(char, Stream)] {
        match family {
            Family::Inet => {
                &[('a', Stream::Uniform), ('b', Stream::InPrefix), ('c', Stream::Flows), ('f', Stream::Zipf)]
            }
            Family::Inet6 => &[('d', Stream::InPrefix), ('e', Stream::Flows), ('g', Stream::Zipf)],
        }
    }

    /// The streams asked for, or all.
    pub fn of(family: Family, letters: &[char]) -> anyhow::Result<Vec<Stream>> {
        let all = Stream::all(family);
        if let Some(unknown) = letters.iter().find(|letter| all.iter().all(|(known, _)| known != *letter)) {
            bail!("no stream {unknown} of {family}: {:?}", all);
        }
        let asked = |letter: &char| letters.is_empty() || letters.contains(letter);
        Ok(all.iter().filter(|(letter, _)| asked(letter)).map(|(_, stream)| *stream).collect())
    }

    pub fn letter(self, family: Family) -> char {
        Stream::all(family).iter().find(|(_, stream)| *stream == self).map_or('?', |(letter, _)| *letter)
    }

    pub fn words(self) -> &'static str {
        match self {
            Stream::Uniform => "uniform over the address space",
            Stream::InPrefix => "random address in an evenly drawn prefix",
            Stream::Flows => "5,000 flows of random addresses in evenly drawn prefixes",
            Stream::Zipf => "random address in a prefix drawn by Zipf(1.0), ranks in random order",
        }
    }
}

/// `count` keys of a stream.
pub fn draw<A: Address>(stream: Stream, rib: &Rib<A>, count: usize) -> Vec<A> {
    match stream {
        Stream::Uniform => probe::uniform(1).take(count).collect(),
        Stream::InPrefix => probe::in_prefix(rib, 2).take(count).collect(),
        Stream::Flows => flows(rib, count),
        Stream::Zipf => zipf(rib, count),
    }
}

/// Numbers below `limit`, drawn evenly.
fn below(seed: u64, limit: usize) -> impl Iterator<Item = usize> {
    probe::uniform::<u32>(seed).map(move |draw| ((u64::from(draw) * limit as u64) >> 32) as usize)
}

fn flows<A: Address>(rib: &Rib<A>, count: usize) -> Vec<A> {
    let flows: Vec<A> = probe::in_prefix(rib, 3).take(FLOWS).collect();
    below(4, FLOWS).take(count).map(|flow| flows[flow]).collect()
}

fn zipf<A: Address>(rib: &Rib<A>, count: usize) -> Vec<A> {
    let prefixes = shuffled(rib);
    let cumulated: Vec<f64> = (1..=prefixes.len())
        .scan(0.0, |sum, rank| {
            *sum += 1.0 / rank as f64;
            Some(*sum)
        })
        .collect();
    let all = cumulated.last().copied().unwrap_or(0.0);
    let draws = probe::uniform::<u32>(6).map(|draw| f64::from(draw) / 2f64.powi(32) * all);
    let ranks = draws.map(|at| cumulated.partition_point(|sum| *sum <= at).min(prefixes.len() - 1));
    let inside = probe::uniform::<A>(7);
    let addr = |(rank, random): (usize, A)| {
        let prefix = prefixes[rank];
        prefix.first() | (random & !A::mask(prefix.len()))
    };
    ranks.zip(inside).map(addr).take(count).collect()
}

/// The prefixes in random order (Fisher and Yates).
fn shuffled<A: Address>(rib: &Rib<A>) -> Vec<Prefix<A>> {
    let mut prefixes: Vec<_> = rib.iter().map(|route| route.prefix).collect();
    let draws = probe::uniform::<u32>(5);
    for (last, draw) in (1..prefixes.len()).rev().zip(draws) {
        prefixes.swap(last, ((u64::from(draw) * (last as u64 + 1)) >> 32) as usize);
    }
    prefixes
}
