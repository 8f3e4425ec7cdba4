//! Allocates the array that all tables share: the main table grows from the beginning, the VRF tables are at the end, the
//! first of them last.

use std::ops::Range;

/// Ranges within `limit` blocks for tables with these needs. Keeps the ranges `before` if they are large enough; if not, VRF
/// tables get a quarter more than they need, as long as there is room. `None` if there is not enough room.
pub(super) fn allocate(limit: usize, before: &[Range<usize>], needed: &[usize]) -> Option<Vec<Range<usize>>> {
    let is_enough = |(range, needed): (&Range<usize>, &usize)| *needed <= range.len();
    if before.len() == needed.len() && before.iter().zip(needed).all(is_enough) {
        return Some(before.to_vec());
    }
    let with_room = place(limit, needed, |needed| needed + needed.div_ceil(4));
    with_room.or_else(|| place(limit, needed, |needed| needed))
}

fn place(limit: usize, needed: &[usize], size: impl Fn(usize) -> usize) -> Option<Vec<Range<usize>>> {
    let (main, others) = needed.split_first()?;
    let mut end = limit;
    let mut ranges = Vec::new();
    for needed in others {
        let start = end.checked_sub(size(*needed))?;
        ranges.push(start..end);
        end = start;
    }
    ranges.insert(0, 0..end);
    (*main <= end).then_some(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_stay_while_they_are_large_enough() {
        let first = allocate(100, &[], &[30, 8, 4]).unwrap();
        assert_eq!(first, [0..85, 90..100, 85..90]);
        assert_eq!(allocate(100, &first, &[85, 10, 5]).unwrap(), first);
        assert_eq!(allocate(100, &first, &[30, 8]).unwrap(), [0..90, 90..100]);
        assert_eq!(allocate(100, &first, &[30, 12, 4]).unwrap(), [0..80, 85..100, 80..85]);
        assert_eq!(
            allocate(100, &first, &[88, 8, 4]).unwrap(),
            [0..88, 92..100, 88..92],
            "without the extra quarter there is just enough"
        );
        assert_eq!(allocate(100, &first, &[89, 8, 4]), None);
    }
}
