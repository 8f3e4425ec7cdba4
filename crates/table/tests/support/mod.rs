//! Helpers for the tests of all algorithms: the algorithms under test, tables, and a table that follows changes.
#![allow(dead_code)] // each test program uses a part of it

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use flate2::read::GzDecoder;
use fullview_table::fib::btree6::Btree6;
use fullview_table::fib::dir18::Dir18;
use fullview_table::fib::dpdk_lpm4::DpdkLpm4;
use fullview_table::fib::dpdk_lpm6::DpdkLpm6;
use fullview_table::fib::dxr::Dxr;
use fullview_table::fib::poptrie::Poptrie;
use fullview_table::fib::registry::Registered;
use fullview_table::fib::{Algorithm, Fib, Instance, Outcome};
use fullview_table::simd::{Isa, IsaChoice};
use fullview_table::{Address, Change, NextHop, Prefix, Rib, probe};
use fullview_testnet::shared;

/// An algorithm under test, named with its variant.
pub type Subject<A> = (String, &'static dyn Algorithm<A>);

/// A family under test.
pub trait Tested: Registered {
    /// The algorithms that use vectors, once for each instruction set of this machine.
    fn by_isa() -> Vec<Subject<Self>>;
}

fn leak<A: Address>(algorithm: impl Algorithm<A> + 'static) -> &'static dyn Algorithm<A> {
    Box::leak(Box::new(algorithm))
}

fn poptrie<A: Address>(isa: Isa) -> Subject<A> {
    (format!("poptrie {}", isa.name()), leak(Poptrie(IsaChoice::Only(isa))))
}

impl Tested for u32 {
    fn by_isa() -> Vec<Subject<u32>> {
        let lpm4 = |isa: Isa| (format!("dpdk_lpm4 {}", isa.name()), leak(DpdkLpm4(IsaChoice::Only(isa))));
        let dxr = |isa: Isa| (format!("dxr {}", isa.name()), leak(Dxr(IsaChoice::Only(isa))));
        let dir18 = |isa: Isa| (format!("dir18 {}", isa.name()), leak(Dir18(IsaChoice::Only(isa))));
        Isa::available().into_iter().flat_map(|isa| [lpm4(isa), dxr(isa), poptrie(isa), dir18(isa)]).collect()
    }
}

impl Tested for u128 {
    fn by_isa() -> Vec<Subject<u128>> {
        let lpm6 = |isa: Isa| (format!("dpdk_lpm6 {}", isa.name()), leak(DpdkLpm6(IsaChoice::Only(isa))));
        let btree6 = |isa: Isa| (format!("btree6 {}", isa.name()), leak(Btree6(IsaChoice::Only(isa))));
        Isa::available().into_iter().flat_map(|isa| [lpm6(isa), poptrie(isa), btree6(isa)]).collect()
    }
}

/// Every registered algorithm, and those with vectors also for each instruction set.
pub fn subjects<A: Tested>() -> Vec<Subject<A>> {
    let registered = A::ALGORITHMS.iter().map(|algorithm| (algorithm.name().to_owned(), *algorithm));
    registered.chain(A::by_isa()).collect()
}

/// Compiles a table.
pub fn compile<A: Address>(algorithm: &dyn Algorithm<A>, rib: &Rib<A>) -> Arc<dyn Fib<A>> {
    algorithm.compile(rib).unwrap().fib()
}

/// Fails with a message if the FIB and the RIB give different answers.
pub fn verify<A: Address>(name: &str, fib: &dyn Fib<A>, rib: &Rib<A>, keys: impl Iterator<Item = A>) {
    if let Err(mismatch) = probe::verify(fib, rib, keys) {
        panic!("{name}: {mismatch}");
    }
}

/// Makes a table from prefixes as text.
pub fn table<A: Address>(routes: &[(&str, u16)]) -> Rib<A> {
    let mut rib = Rib::default();
    for (prefix, hop) in routes {
        rib.announce(prefix.parse().unwrap(), NextHop(*hop));
    }
    rib
}

/// Makes a table of prefixes that nest and adjoin: addresses from a few neighbourhoods, and all lengths.
pub fn random_table<A: Address>(seed: u64, routes: usize, next_hops: u16) -> Rib<A> {
    let mut rib = Rib::default();
    for draw in probe::uniform::<u128>(seed).take(routes) {
        let len = (draw >> 64) as u8 % (A::BITS + 1);
        // Two thirds of the prefixes share their first bits, so that many nest.
        let near = if draw & 3 == 0 { 0 } else { A::BITS / 2 };
        let addr = (A::from(draw >> (128 - u32::from(A::BITS))).unwrap() & !A::mask(near))
            | (A::from(0x0a0b_0c0d).unwrap() << usize::from(A::BITS - 32) & A::mask(near));
        rib.announce(Prefix::containing(addr, len), NextHop((draw >> 80) as u16 % next_hops + 1));
    }
    rib
}

/// The lines of a compressed file of real tables; `None`, after a printed line, if the file is not available.
pub fn shared_lines(name: &str) -> Option<impl Iterator<Item = String>> {
    let file = File::open(shared::data(&format!("tables/{name}"))?).unwrap();
    Some(BufReader::new(GzDecoder::new(file)).lines().map(Result::unwrap))
}

/// One family of the real full view of 2025, with 64 next hops assigned by line number.
pub fn full_view<A: Address>() -> Option<Rib<A>> {
    let mut rib = Rib::default();
    for (number, line) in shared_lines("full-view-2025.txt.gz")?.enumerate() {
        if let Ok(prefix) = line.parse::<Prefix<A>>() {
            rib.announce(prefix, NextHop(((number * 2_654_435_761) >> 16) as u16 % 64 + 1));
        }
    }
    assert!(rib.len() > 100_000, "{} routes only", rib.len());
    Some(rib)
}

/// A compiled table that follows its RIB as the contract asks.
pub struct Follower<A: Address> {
    algorithm: &'static dyn Algorithm<A>,
    instance: Box<dyn Instance<A>>,
    /// How many times the table was compiled again.
    pub rebuilds: usize,
}

impl<A: Address> Follower<A> {
    pub fn new(algorithm: &'static dyn Algorithm<A>, rib: &Rib<A>) -> Self {
        Follower { algorithm, instance: algorithm.compile(rib).unwrap(), rebuilds: 0 }
    }

    /// Brings the compiled table up to `rib`, which holds `changes`. An instance that asks for a larger batch gets the
    /// same changes again; if it still asks, the table is compiled again.
    pub fn follow(&mut self, rib: &Rib<A>, changes: &[Change<A>]) {
        let outcome = match self.instance.patch(rib, changes) {
            Outcome::Batch => self.instance.patch(rib, changes),
            outcome => outcome,
        };
        match outcome {
            Outcome::Applied => {}
            Outcome::Rebuild | Outcome::Batch => {
                self.instance = self.algorithm.compile(rib).unwrap();
                self.rebuilds += 1;
            }
            Outcome::Error(error) => panic!("{}: {error}", self.algorithm.name()),
        }
    }

    pub fn fib(&self) -> Arc<dyn Fib<A>> {
        self.instance.fib()
    }
}
