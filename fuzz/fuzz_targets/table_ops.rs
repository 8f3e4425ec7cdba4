//! Announcements and withdrawals in any order: every registered algorithm follows the RIB as the contract asks, answers
//! like the oracle, does not grow by routes that come and go, and gives all its memory back.
#![no_main]

use std::alloc::System;

use cap::Cap;
use fullview_table::fib::linear::Linear;
use fullview_table::fib::registry::Registered;
use fullview_table::fib::{Algorithm, Instance, Outcome};
use fullview_table::{Change, NextHop, Prefix, Rib, probe};

/// Counts what is allocated, so that a run can be held to give back what it took.
#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, usize::MAX);

/// More would spend the time on one input.
const MOST_CHANGES: usize = 40;
/// Bytes of one change in the input.
const CHANGE: usize = 5;
/// Shorter prefixes write millions of entries each, which is slow and tries nothing new.
const SHORTEST: u8 = 8;

/// One compiled table, kept up with the RIB.
struct Follower<A: Registered> {
    algorithm: &'static dyn Algorithm<A>,
    instance: Box<dyn Instance<A>>,
    /// Changes the instance wants more of before it takes them.
    waiting: Vec<Change<A>>,
}

fn compile<A: Registered>(algorithm: &dyn Algorithm<A>, rib: &Rib<A>) -> Box<dyn Instance<A>> {
    algorithm.compile(rib).expect("a few routes fit")
}

impl<A: Registered> Follower<A> {
    fn new(algorithm: &'static dyn Algorithm<A>, rib: &Rib<A>) -> Self {
        Follower { algorithm, instance: compile(algorithm, rib), waiting: Vec::new() }
    }

    fn follow(&mut self, rib: &Rib<A>, change: Change<A>) {
        self.waiting.push(change);
        match self.instance.patch(rib, &self.waiting) {
            Outcome::Applied => self.waiting.clear(),
            Outcome::Batch => {}
            Outcome::Rebuild => self.rebuild(rib),
            Outcome::Error(error) => panic!("{} gave up on a small table: {error}", self.algorithm.name()),
        }
    }

    fn rebuild(&mut self, rib: &Rib<A>) {
        self.instance = compile(self.algorithm, rib);
        self.waiting.clear();
    }

    /// Compares with the oracle at the edges of all prefixes, address by address and as one batch.
    fn verify(&mut self, rib: &Rib<A>, keys: &[A]) {
        if !self.waiting.is_empty() && self.instance.patch(rib, &self.waiting) != Outcome::Applied {
            self.rebuild(rib);
        }
        self.waiting.clear();
        let (fib, oracle) = (self.instance.fib(), compile(&Linear, rib).fib());
        let mut batch = vec![NextHop::NONE; keys.len()];
        fib.lookup_batch(keys, &mut batch);
        for (key, batched) in keys.iter().zip(batch) {
            let wanted = oracle.lookup(*key);
            assert_eq!((fib.lookup(*key), batched), (wanted, wanted), "{}: {key:?}", self.algorithm.name());
        }
    }

    fn size(&self) -> usize {
        self.instance.fib().footprint().total()
    }
}

/// Prefixes near each other, so that they nest and touch: a few bits at the top, at the /24 boundary, and at the end.
fn change<A: Registered>(bytes: &[u8; CHANGE]) -> Change<A> {
    let [control, hop, len, high, low] = *bytes;
    let bits = |value: u8, at: u8| A::from(value).expect("a byte fits") << usize::from(at);
    let addr =
        bits(10, A::BITS - 8) | bits(high, A::BITS - 24) | bits(low >> 4, A::BITS - 28) | bits(low & 15, 0);
    let len = SHORTEST + len % (A::BITS - SHORTEST + 1);
    // The last ones need wider entries than the others.
    let hop = if hop > 250 { 40_000 } else { u16::from(hop) };
    Change { prefix: Prefix::containing(addr, len), next_hop: (control & 1 == 0).then_some(NextHop(hop)) }
}

/// A route that comes and goes costs memory once at most, and none of it changes an answer.
fn flap<A: Registered>(follower: &mut Follower<A>, rib: &mut Rib<A>, prefix: Prefix<A>) -> usize {
    for next_hop in [Some(NextHop(9)), None] {
        let change = Change { prefix, next_hop };
        rib.apply(change);
        follower.follow(rib, change);
    }
    follower.size()
}

fn check<A: Registered>(input: &[u8]) {
    let changes: Vec<Change<A>> = input.as_chunks().0.iter().take(MOST_CHANGES).map(change).collect();
    let Some(last) = changes.last().map(|change| change.prefix) else { return };
    let mut rib = Rib::default();
    let mut followers: Vec<_> =
        A::ALGORITHMS.iter().map(|algorithm| Follower::new(*algorithm, &rib)).collect();
    for change in changes {
        rib.apply(change);
        followers.iter_mut().for_each(|follower| follower.follow(&rib, change));
    }
    for follower in &mut followers {
        let mut rib = rib.clone();
        follower.verify(&rib, &probe::edges(&rib).collect::<Vec<_>>());
        let sizes = [(); 3].map(|()| flap(follower, &mut rib, last));
        assert!(sizes[1] <= sizes[0] && sizes[2] <= sizes[1], "{}: {sizes:?}", follower.algorithm.name());
        follower.verify(&rib, &probe::edges(&rib).chain([last.first(), last.last()]).collect::<Vec<_>>());
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((family, input)) = data.split_first() else { return };
    let before = ALLOCATED.allocated();
    if family & 1 == 0 {
        check::<u32>(input)
    } else {
        check::<u128>(input)
    }
    assert_eq!(ALLOCATED.allocated(), before, "bytes were not given back");
});
