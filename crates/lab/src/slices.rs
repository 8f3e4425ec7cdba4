//! The slices of a panel: every turn of every arm, in columns.
//!
//! A round has one slice of each arm, in an order of its own. A file of slices holds the number of arms, then each column
//! as little-endian 32-bit numbers, and is compressed with zstd, whose checksum finds a damaged file.

use std::io::Read;
use std::time::Duration;

use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::panel::Slice;

const MAGIC: &[u8; 8] = b"fvslice2";

/// All slices of a panel, in the order of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slices {
    arms: u32,
    columns: Columns,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Columns {
    /// Which arm had the turn: the controls first, then the members.
    arm: Vec<u32>,
    counted: Vec<u32>,
    offered: Vec<u32>,
    nanoseconds: Vec<u32>,
    lost_core: Vec<u32>,
}

/// The columns in the order of the file.
const COLUMNS: [fn(&mut Columns) -> &mut Vec<u32>; 5] = [
    |columns| &mut columns.arm,
    |columns| &mut columns.counted,
    |columns| &mut columns.offered,
    |columns| &mut columns.nanoseconds,
    |columns| &mut columns.lost_core,
];

impl Slices {
    /// No slices yet, of this many arms.
    pub fn new(arms: usize) -> Self {
        Self { arms: saturated(arms as u64), columns: Columns::default() }
    }

    /// Appends the next slice. Counts and times beyond 32 bits, which are slices of seconds, are halved together until they
    /// fit: rates stay as they are.
    pub fn push(&mut self, arm: usize, slice: &Slice) {
        let [time, lost_core] = [slice.time, slice.lost_core].map(nanoseconds);
        let all = slice.counted | slice.offered | time | lost_core;
        let halvings = (u64::BITS - all.leading_zeros()).saturating_sub(u32::BITS);
        let halved = |number: u64| (number >> halvings) as u32;
        let columns = &mut self.columns;
        columns.arm.push(saturated(arm as u64));
        columns.counted.push(halved(slice.counted));
        columns.offered.push(halved(slice.offered));
        columns.nanoseconds.push(halved(time));
        columns.lost_core.push(halved(lost_core));
    }

    /// Appends the slices of later rounds of the same arms.
    pub(crate) fn append(&mut self, mut later: Slices) {
        for column in COLUMNS {
            column(&mut self.columns).append(column(&mut later.columns));
        }
    }

    /// Number of arms in a round.
    pub fn arms(&self) -> usize {
        self.arms as usize
    }

    /// Number of complete rounds.
    pub fn rounds(&self) -> usize {
        self.columns.arm.len() / self.arms().max(1)
    }

    /// The slices of one arm, round by round; `None` where a round lacks it.
    pub fn of(&self, arm: usize) -> impl Iterator<Item = Option<Slice>> {
        (0..self.rounds()).map(move |round| {
            let first = round * self.arms();
            let at = (first..first + self.arms()).find(|&at| self.columns.arm[at] as usize == arm)?;
            Some(self.at(at))
        })
    }

    fn at(&self, at: usize) -> Slice {
        let columns = &self.columns;
        Slice {
            counted: columns.counted[at].into(),
            offered: columns.offered[at].into(),
            time: Duration::from_nanos(columns.nanoseconds[at].into()),
            lost_core: Duration::from_nanos(columns.lost_core[at].into()),
        }
    }

    /// The content of a file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let count = saturated(self.columns.arm.len() as u64);
        let mut plain = MAGIC.to_vec();
        plain.extend([self.arms, count].map(u32::to_le_bytes).as_flattened());
        let mut columns = self.columns.clone();
        for column in COLUMNS {
            plain.extend(column(&mut columns).iter().flat_map(|number| number.to_le_bytes()));
        }
        compress_to_vec(plain.as_slice(), CompressionLevel::Fastest)
    }

    /// Reads the content of a file. The error says what is wrong with it.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let plain = decompressed(bytes)?;
        let body = plain.strip_prefix(MAGIC).ok_or("not a file of slices: its first bytes are others")?;
        let (numbers, rest) = body.as_chunks::<4>();
        let mut numbers = numbers.iter().map(|bytes| u32::from_le_bytes(*bytes));
        let (arms, count) = numbers.next().zip(numbers.next()).ok_or("the file of slices is too short")?;
        let whole = rest.is_empty() && numbers.len() == count as usize * COLUMNS.len();
        if !whole || arms == 0 {
            return Err(format!("the file of slices does not hold {count} slices of {arms} arms"));
        }
        let mut columns = Columns::default();
        COLUMNS
            .iter()
            .for_each(|column| *column(&mut columns) = numbers.by_ref().take(count as usize).collect());
        Ok(Self { arms, columns })
    }
}

fn decompressed(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let refused = |error: &dyn std::fmt::Display| format!("not a file of slices: {error}");
    let mut decoder = StreamingDecoder::new(bytes).map_err(|error| refused(&error))?;
    let mut plain = Vec::new();
    decoder.read_to_end(&mut plain).map_err(|error| refused(&error))?;
    let whole = decoder.decoder.get_checksum_from_data() == decoder.decoder.get_calculated_checksum();
    if whole { Ok(plain) } else { Err(refused(&"its checksum is wrong")) }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn saturated(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slice(counted: u64) -> Slice {
        Slice {
            counted,
            offered: counted + 1,
            time: Duration::from_micros(counted + 7),
            lost_core: Duration::from_nanos(counted % 3),
        }
    }

    fn two_arms(rounds: u64) -> Slices {
        let mut slices = Slices::new(2);
        for round in 0..rounds {
            let first = (round % 2) as usize;
            slices.push(first, &slice(10 * round + first as u64));
            slices.push(1 - first, &slice(10 * round + 1 - first as u64));
        }
        slices
    }

    #[test]
    fn slices_of_an_arm_come_round_by_round_whatever_the_order_in_a_round() {
        let slices = two_arms(3);
        let counted: Vec<u64> = slices.of(1).flatten().map(|slice| slice.counted).collect();
        assert_eq!((slices.rounds(), counted), (3, vec![1, 11, 21]));
    }

    #[test]
    fn a_round_that_was_cut_short_does_not_count() {
        let mut slices = two_arms(2);
        slices.push(0, &slice(9));
        assert_eq!((slices.rounds(), slices.of(0).count()), (2, 2));
    }

    #[test]
    fn a_slice_of_many_seconds_keeps_its_rates() {
        let mut slices = Slices::new(1);
        let time = Duration::from_secs(10);
        slices.push(0, &Slice { counted: 5 << 33, offered: 6 << 33, time, lost_core: time / 4 });
        let stored = slices.of(0).next().flatten().unwrap();
        let rates = [stored.per_second(stored.counted), stored.per_second(stored.offered)];
        for (rate, expected) in
            rates.into_iter().zip([5.0, 6.0].map(|count: f64| count * (1_u64 << 33) as f64 / 7.5))
        {
            assert!((rate / expected - 1.0).abs() < 1e-6, "{rate} instead of {expected}");
        }
    }

    #[test]
    fn a_file_gives_back_what_was_written() {
        let slices = two_arms(100);
        let bytes = slices.encode();
        assert_eq!(Slices::decode(&bytes), Ok(slices));
        assert!(bytes.len() < 100 * 2 * 20, "{} bytes", bytes.len());
    }

    #[test]
    fn every_damaged_byte_is_found() {
        let bytes = two_arms(5).encode();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            // A bit of the frame's header may change nothing of the content.
            assert!(
                Slices::decode(&damaged).is_err() || Slices::decode(&damaged) == Ok(two_arms(5)),
                "byte {at}"
            );
            assert!(Slices::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }

    proptest! {
        #[test]
        fn reading_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Slices::decode(&bytes);
            let _ = Slices::decode(&compress_to_vec(&bytes[..], CompressionLevel::Fastest));
            let mut named = MAGIC.to_vec();
            named.extend(&bytes);
            let _ = Slices::decode(&compress_to_vec(&named[..], CompressionLevel::Fastest));
        }
    }
}
