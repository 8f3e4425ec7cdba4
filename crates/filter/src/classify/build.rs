use std::collections::BTreeSet;

use super::dimension::Dimension;
use super::intervals::IntervalSet;
use super::rows::{RowArena, RowBuilder, RowNumber, RowStart, TooLarge};
use crate::address::{Address, Family};
use crate::address_table::RangeMap;
use crate::packet::Packet;
use crate::rule::CompiledRule;

/// From a value to a row.
#[derive(Clone, Debug)]
pub(super) enum Values {
    Small(RangeMap<u32>),
    Addresses(RangeMap<u32>, RangeMap<u128>),
}

/// What is known in one dimension.
#[derive(Clone, Debug)]
pub(super) struct Index {
    pub dimension: Dimension,
    pub values: Values,
    pub rows: RowArena,
    /// The rules that ask about this dimension: the row of a packet without a value.
    pub asking: RowStart,
}

impl Index {
    /// The row of the rules that ask and accept the packet's value.
    #[inline(always)]
    pub fn row(&self, packet: &Packet) -> RowStart {
        match &self.values {
            Values::Small(values) => {
                self.dimension.small_value(packet).map_or(self.asking, |value| values.get(value))
            }
            Values::Addresses(inet, inet6) => {
                let address = match self.dimension {
                    Dimension::Source => packet.source,
                    _ => packet.destination,
                };
                // Not the packet's, as rules compare addresses whatever it is: an IPv6 packet may have one of IPv4's part.
                match address.family() {
                    Family::Inet => inet.get(address.0 as u32),
                    Family::Inet6 => inet6.get(address.0),
                }
            }
        }
    }
}

/// The dimensions in which the rules differ.
#[derive(Clone, Debug)]
pub struct Classifier {
    pub(super) indexes: Vec<Index>,
    pub(super) rules: usize,
}

impl Classifier {
    /// Analyses the rules.
    pub fn new(rules: &[CompiledRule]) -> Self {
        let indexes = Dimension::MOST_TELLING_FIRST.into_iter();
        let indexes = indexes.filter_map(|dimension| index(dimension, rules)).collect();
        Classifier { indexes, rules: rules.len() }
    }

    /// The bytes of all rows.
    pub fn bytes(&self) -> usize {
        self.indexes.iter().map(|index| index.rows.bytes()).sum()
    }
}

/// The index of a dimension. There is none if no rule asks about it, or if it would be too large: then every rule is a
/// candidate in it.
fn index(dimension: Dimension, rules: &[CompiledRule]) -> Option<Index> {
    let accepted: Vec<_> = rules.iter().map(|rule| dimension.accepted(rule)).collect();
    if accepted.iter().all(Option::is_none) {
        return None;
    }
    let mut rows = RowBuilder::new(rules.len());
    let numbered = || (0..).zip(&accepted);
    let numbers = |asks: bool| numbered().filter(move |(_, set)| set.is_some() == asks).map(|(rule, _)| rule);
    let asking = rows.row(&numbers(true).collect::<Vec<_>>()).ok()? as usize;
    let sets: Vec<_> = numbered().filter_map(|(rule, set)| Some((rule, set.as_ref()?))).collect();
    let ranges = starts(&sets, &mut rows).ok()?;
    let (rows, begins) = rows.finish(&numbers(false).collect::<Vec<_>>());
    let ranges = ranges.into_iter().map(|(start, row)| (start, begins[row as usize])).collect();
    Some(Index { dimension, values: values(dimension, ranges), rows, asking: begins[asking] })
}

fn values(dimension: Dimension, starts: Vec<(u128, RowStart)>) -> Values {
    if !dimension.is_address() {
        let small = starts.into_iter().map(|(start, row)| (start as u32, row));
        return Values::Small(RangeMap::new(small.collect()));
    }
    // IPv4's part of the addresses, from zero on.
    let (first, last) = (Address::inet(0).0, Address::inet(u32::MAX).0);
    let before = starts.partition_point(|(start, _)| *start <= first) - 1;
    let within = starts[before..].iter().take_while(|(start, _)| *start <= last);
    let inet = within.map(|(start, row)| (start.saturating_sub(first) as u32, *row));
    Values::Addresses(RangeMap::new(inet.collect()), RangeMap::new(without(&starts, first, last)))
}

/// The ranges without those from `first` to `last`, so that a map of the others has its slots where these are.
fn without(starts: &[(u128, RowStart)], first: u128, last: u128) -> Vec<(u128, RowStart)> {
    let (lower, rest) = starts.split_at(starts.partition_point(|(start, _)| *start < first));
    let (within, upper) = rest.split_at(rest.partition_point(|(start, _)| *start <= last + 1));
    let after = within.last().or(lower.last()).map(|(_, row)| (last + 1, *row));
    let mut others: Vec<_> = lower.iter().copied().chain(after).chain(upper.iter().copied()).collect();
    others.dedup_by_key(|(_, row)| *row);
    others
}

/// The starts of ranges in which the same rules accept all values, with their rows. The first start is zero.
fn starts(sets: &[(u32, &IntervalSet)], rows: &mut RowBuilder) -> Result<Vec<(u128, RowNumber)>, TooLarge> {
    let mut events = Vec::new();
    for (rule, set) in sets {
        for (first, last) in &set.0 {
            events.push((*first, *rule, true));
            events.extend(last.checked_add(1).map(|after| (after, *rule, false)));
        }
    }
    events.sort_unstable();
    let mut active = BTreeSet::new();
    let mut starts = vec![(0, rows.row(&[])?)];
    for at in events.chunk_by(|one, other| one.0 == other.0) {
        for (_, rule, begins) in at {
            if *begins {
                active.insert(*rule)
            } else {
                active.remove(rule)
            };
        }
        let row = rows.row(&active.iter().copied().collect::<Vec<_>>())?;
        match starts.last_mut() {
            Some(last) if last.0 == at[0].0 => last.1 = row,
            _ => starts.push((at[0].0, row)),
        }
    }
    Ok(starts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The part in the middle is from 100 to 199.
        #[test]
        fn ranges_without_a_part_are_the_same_elsewhere(
            starts in prop::collection::btree_map(1_u128..300, 0_u32..3, 0..20),
            edges in prop::collection::btree_map(99_u128..=101, 0_u32..3, 0..3),
            ends in prop::collection::btree_map(199_u128..=201, 0_u32..3, 0..3),
        ) {
            let mut all = starts;
            all.extend(edges.into_iter().chain(ends).chain([(0, 7)]));
            let all: Vec<_> = all.into_iter().collect();
            let (whole, others) = (RangeMap::new(all.clone()), without(&all, 100, 199));
            prop_assert!(others.iter().all(|(start, _)| !(100..=199).contains(start)));
            prop_assert!(others.is_sorted_by(|one, next| one.0 < next.0 && one.1 != next.1));
            let others = RangeMap::new(others);
            for value in (0..100).chain(200..400) {
                prop_assert_eq!(others.get(value), whole.get(value));
            }
        }
    }
}
