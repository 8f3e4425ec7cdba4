//! Every instruction set computes what plain code does.

use std::array::from_fn;

use super::*;
use crate::memory::{Pages, Top, Word, Word8, Word16, Word32};
use crate::nexthop::NextHop;

/// Runs every operation once and stores the results in order. Lanes are read back by 16-bit stores of their high and
/// low halves.
struct Everything<'a> {
    narrowest: &'a Pages<Word8>,
    narrow: &'a Pages<Word16>,
    wide: &'a Pages<Word32>,
    results: &'a mut Vec<[u32; LANES]>,
}

fn out<L: Lanes>(lanes: L, values: L::U32) -> [u32; LANES] {
    let (mut low, mut high) = ([NextHop::NONE; LANES], [NextHop::NONE; LANES]);
    lanes.store_next_hops(values, &mut low);
    lanes.store_next_hops(lanes.shr::<16>(values), &mut high);
    from_fn(|i| u32::from(high[i].0) << 16 | u32::from(low[i].0))
}

/// The results of single loads, and in the high halves whether the highest value was among them.
fn read<L: Lanes, W: Word>(lanes: L, entries: &Pages<W>, index: L::U32) -> [u32; LANES] {
    let (mut places, mut hops) = (Places::<_, 2>::new(entries.ring()), [NextHop::NONE; LANES]);
    places.set(lanes, 1, index);
    let any_highest = places.read(lanes, 1, &mut hops);
    hops.map(|hop| u32::from(any_highest) << 16 | u32::from(hop.0))
}

impl Kernel for Everything<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let a: [u32; LANES] = from_fn(|i| 0x9e37_79b9u32.wrapping_mul(i as u32 + 1));
        let b: [u32; LANES] = from_fn(|i| 0x85eb_ca6bu32.wrapping_mul(i as u32 + 7));
        // These indices are inside, at the end, beyond it, and as large as possible.
        let index: [u32; LANES] = from_fn(|i| [0, 1, 2, 97, 98, 99, 100, u32::MAX][i % 8]);
        let addrs = a;
        let (a, b, index) = (lanes.load(&a), lanes.load(&b), lanes.load(&index));
        let mask = lanes.test(a, lanes.splat(0x8000_0001));
        let (narrow, wide) = (self.narrow.words(), self.wide.words());
        let results = [
            lanes.and(a, b),
            lanes.or(a, b),
            lanes.add(a, b),
            lanes.sub(a, b),
            lanes.min(a, b),
            lanes.shr::<9>(a),
            lanes.shl::<5>(a),
            lanes.shr_by(a, lanes.and(b, lanes.splat(31))),
            lanes.shl_by(a, lanes.and(b, lanes.splat(31))),
            lanes.count_ones(a),
            lanes.select(lanes.at_most(a, b), a, b),
            lanes.select(lanes.at_most(a, a), a, b),
            lanes.select(mask, a, b),
            lanes.gather(wide, index),
            lanes.gather_where(mask, wide, index, b),
            lanes.gather(narrow, index),
            lanes.gather_where(mask, narrow, index, b),
            lanes.gather_where(lanes.test(a, lanes.splat(0)), wide, index, b),
        ];
        self.results.extend(results.map(|values| out(lanes, values)));
        let any = [mask, lanes.test(a, lanes.splat(0)), lanes.all()].map(|mask| u32::from(lanes.any(mask)));
        self.results.push(from_fn(|i| any[i % any.len()]));
        let top = Top::<6>::new(wide.as_slice()).unwrap();
        self.results.push(out(lanes, lanes.read_top(top, &addrs)));
        self.results.push(read(lanes, self.narrow, index));
        self.results.push(read(lanes, self.narrowest, index));
        self.results.push(read(lanes, self.narrowest, a));
        let mut stored = [0; LANES];
        lanes.store(a, &mut stored);
        self.results.push(stored);
    }
}

#[test]
fn every_instruction_set_computes_what_plain_code_does() {
    let narrowest = Pages::<Word8>::zeroed(100).unwrap();
    let (narrow, wide) = (Pages::<Word16>::zeroed(100).unwrap(), Pages::<Word32>::zeroed(100).unwrap());
    for i in 0..100 {
        // The ring ends with entry 63.
        narrowest.set(i, 0xc0 + i as u32);
        narrow.set(i, 0xff00 + i as u32);
        wide.set(i, 0xffff_0000 + i as u32);
    }
    let all = Isa::available().into_iter().map(|isa| {
        let mut results = Vec::new();
        let everything =
            Everything { narrowest: &narrowest, narrow: &narrow, wide: &wide, results: &mut results };
        run(isa, everything);
        (isa.name(), results)
    });
    let all: Vec<_> = all.collect();
    assert_eq!(all[0].0, "scalar");
    assert_eq!(all[0].1[13][..8], [0, 1, 2, 97, 98, 99, 99, 99].map(|i| 0xffff_0000 + i), "clamped");
    let wrapped = [0, 1, 2, 97 - 64, 98 - 64, 99 - 64, 100 - 64, 63];
    let singly = &all[0].1[all[0].1.len() - 5..];
    assert_eq!(singly[0][0], 0xffff_0000 + (0x9e37_79b9u32 >> 26));
    assert_eq!(singly[1][..8], wrapped.map(|i| 0xff00 + i));
    assert_eq!(singly[2][..8], wrapped.map(|i| 1 << 16 | (0xc0 + i)), "the highest is among them");
    for (name, results) in &all {
        assert_eq!(results, &all[0].1, "{name}");
    }
}
