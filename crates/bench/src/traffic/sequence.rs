//! Order: what the numbers of the packets say about duplicates and reordering.
//!
//! A packet is reordered as in RFC 4737 section 3: its number is lower than one that arrived before it. A packet whose
//! number has arrived already is a duplicate and not reordered. Both are counted for the stream and, as routers with
//! several queues promise no more, for each flow by itself.

/// Numbers behind the highest one within which a duplicate is recognised; an older packet counts as reordered and as
/// [`Order::stale`].
const WINDOW: usize = 1 << 13;

/// What was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Packets with a number that has arrived before.
    pub duplicates: u64,
    /// Packets that arrived after one with a higher number.
    pub reordered: u64,
    /// Packets that arrived after one of the same flow with a higher number.
    pub reordered_in_flow: u64,
    /// Reordered packets so late that they might be duplicates.
    pub stale: u64,
}

impl Order {
    pub(super) fn add(&mut self, later: Order) {
        self.duplicates += later.duplicates;
        self.reordered += later.reordered;
        self.reordered_in_flow += later.reordered_in_flow;
        self.stale += later.stale;
    }
}

/// Follows the numbers of a stream.
pub struct Sequence {
    order: Order,
    /// The number after the highest one seen.
    next: u64,
    /// By number modulo the window: the last number seen there, plus one.
    seen: Vec<u64>,
    /// By flow: the number after the highest one seen.
    next_in_flow: Vec<u64>,
}

impl Sequence {
    /// For a stream of `flows` flows.
    pub fn new(flows: usize) -> Self {
        Sequence { order: Order::default(), next: 0, seen: vec![0; WINDOW], next_in_flow: vec![0; flows] }
    }

    /// Notes the arrival of packet number `sequence`; flows beyond the number given are not followed by themselves.
    pub fn note(&mut self, sequence: u64, flow: u32) {
        let after = sequence.saturating_add(1);
        let seen = &mut self.seen[sequence as usize % WINDOW];
        if *seen == after {
            self.order.duplicates += 1;
            return;
        }
        if after < self.next {
            self.order.reordered += 1;
        }
        if self.next.saturating_sub(after) < WINDOW as u64 {
            *seen = after;
        } else {
            self.order.stale += 1;
        }
        self.next = self.next.max(after);
        self.note_in_flow(after, flow);
    }

    fn note_in_flow(&mut self, after: u64, flow: u32) {
        if let Some(next) = self.next_in_flow.get_mut(flow as usize) {
            self.order.reordered_in_flow += u64::from(after < *next);
            *next = (*next).max(after);
        }
    }

    /// What was seen so far.
    pub fn order(&self) -> Order {
        self.order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(arrivals: impl IntoIterator<Item = (u64, u32)>) -> Order {
        let mut sequence = Sequence::new(2);
        arrivals.into_iter().for_each(|(number, flow)| sequence.note(number, flow));
        sequence.order()
    }

    #[test]
    fn gaps_are_neither_duplicates_nor_reordered() {
        let every_third = (0..100_000).step_by(3).map(|number| (number, 0));
        assert_eq!(order_of(every_third), Order::default());
    }

    #[test]
    fn one_late_packet_is_reordered_once() {
        let order = order_of([(0, 0), (2, 0), (3, 1), (1, 0), (4, 0)]);
        assert_eq!(order, Order { reordered: 1, reordered_in_flow: 1, ..Order::default() });
    }

    #[test]
    fn flows_that_overtake_each_other_keep_their_own_order() {
        let order = order_of([(0, 0), (2, 0), (1, 1), (3, 1)]);
        assert_eq!(order, Order { reordered: 1, ..Order::default() });
    }

    #[test]
    fn duplicates_are_not_reordered() {
        let order = order_of([(0, 0), (1, 0), (0, 0), (1, 0)]);
        assert_eq!(order, Order { duplicates: 2, ..Order::default() });
    }

    #[test]
    fn beyond_the_window_late_is_stale() {
        let late = order_of([(WINDOW as u64, 0), (0, 0), (0, 0)]);
        assert_eq!((late.duplicates, late.reordered, late.stale), (0, 2, 2));
        let last = order_of([(WINDOW as u64 - 1, 0), (0, 0), (0, 0)]);
        assert_eq!((last.duplicates, last.reordered, last.stale), (1, 1, 0));
    }
}
