//! Copies of a table's memory: updated by the changed blocks, they are equal to it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers fail by panicking, as tests do

mod support;

use fullview_table::fib::Fib;
use fullview_table::fib::image::{BLOCK, Image, Mark, Section};
use fullview_table::fib::registry::{self, Registered};
use fullview_table::{Change, NextHop, Prefix, probe};

use support::{Follower, random_table};

fn sections<A>(fib: &dyn Fib<A>) -> Vec<Section<'_>>
where
    A: Registered,
{
    match fib.image().unwrap() {
        Image::Dir18 { index, leaves, .. } => vec![index, leaves],
        Image::Btree6 { roots, branches, leaves } => vec![roots, branches, leaves],
    }
}

/// A copy of one section.
#[derive(Default)]
struct Copied {
    words: Vec<[u32; BLOCK]>,
    mark: Option<Mark>,
}

impl Copied {
    /// Copies the changed blocks; returns their number.
    fn follow(&mut self, section: Section<'_>) -> usize {
        let since = self.mark.replace(section.mark());
        let changed = since.and_then(|mark| Some(section.changed(mark)?.collect::<Vec<_>>()));
        let blocks = changed.unwrap_or_else(|| (0..section.blocks().max(self.words.len())).collect());
        for block in &blocks {
            self.words.resize(self.words.len().max(block + 1), [0; BLOCK]);
            section.read(*block, &mut self.words[*block]);
        }
        blocks.len()
    }

    fn assert_is(&self, section: Section<'_>) {
        let mut words = [0; BLOCK];
        for (block, copied) in self.words.iter().enumerate() {
            section.read(block, &mut words);
            assert_eq!(copied, &words, "block {block}");
        }
        assert!(section.blocks() <= self.words.len());
    }
}

/// Two copies, of which one is updated after every change and the other after every seventh; some changes cause a
/// rebuild.
fn copies_follow<A: Registered>(algorithm: &str) {
    let mut rib = random_table::<A>(3, 2_000, 50);
    let mut follower = Follower::new(registry::find::<A>(algorithm).unwrap(), &rib);
    let count = sections(&*follower.fib()).len();
    let mut copies: [Vec<Copied>; 2] = [(); 2].map(|()| (0..count).map(|_| Copied::default()).collect());
    let mut blocks = Vec::new();
    for (n, addr) in probe::in_prefix(&rib, 9).take(150).enumerate() {
        let len = (n * 5 % usize::from(A::BITS / 2)) as u8 + A::BITS / 4;
        let next_hop = (n % 3 != 0).then_some(NextHop(n as u16 + 1));
        let change = Change { prefix: Prefix::containing(addr, len), next_hop };
        rib.apply(change);
        follower.follow(&rib, &[change]);
        let fib = follower.fib();
        for copy in copies.iter_mut().take(if n % 7 == 0 { 2 } else { 1 }) {
            let taken = copy.iter_mut().zip(sections(&*fib)).map(|(copied, section)| copied.follow(section));
            blocks.push(taken.sum::<usize>());
            copy.iter().zip(sections(&*fib)).for_each(|(copied, section)| copied.assert_is(section));
        }
    }
    blocks.sort_unstable();
    assert!(blocks[blocks.len() / 2] < 16, "a change concerns few blocks: {blocks:?}");
}

#[test]
fn copies_of_dir18_follow() {
    copies_follow::<u32>("dir18");
}

#[test]
fn copies_of_btree6_follow() {
    copies_follow::<u128>("btree6");
}
