//! Numbers in the order in which they were added. Any of them can be taken out at once, and a cursor goes round.

use crate::memory::LargeArray;

/// The neighbours of a number in the list.
#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

/// A list of numbers below a bound. The link behind those of the numbers belongs to the ends of the list, which is a ring.
#[derive(Debug)]
pub(super) struct NumberList {
    links: LargeArray<Link>,
    /// What the next step visits.
    cursor: u32,
    len: u32,
}

impl NumberList {
    /// An empty list for numbers below this one.
    pub fn new(bound: u32) -> Self {
        let links = LargeArray::new(Link { before: bound, after: bound }, bound as usize + 1);
        NumberList { links, cursor: bound, len: 0 }
    }

    /// How many numbers there are.
    pub fn len(&self) -> u32 {
        self.len
    }

    fn ends(&self) -> u32 {
        self.links.len() as u32 - 1
    }

    /// The number that was added first.
    pub fn first(&self) -> Option<u32> {
        let first = self.links[self.ends() as usize].after;
        (first != self.ends()).then_some(first)
    }

    /// Adds a number that is not in the list.
    pub fn push(&mut self, number: u32) {
        let last = self.links[self.ends() as usize].before;
        self.join(last, number);
        self.join(number, self.ends());
        self.len += 1;
    }

    /// Takes out a number that is in the list.
    pub fn remove(&mut self, number: u32) {
        let Link { before, after } = self.links[number as usize];
        self.join(before, after);
        self.len -= 1;
        if self.cursor == number {
            self.cursor = after;
        }
    }

    /// The number at the cursor, which goes on to the next one, after the last to the first.
    pub fn step(&mut self) -> Option<u32> {
        let number = if self.cursor == self.ends() { self.first()? } else { self.cursor };
        self.cursor = self.links[number as usize].after;
        Some(number)
    }

    fn join(&mut self, before: u32, after: u32) {
        self.links[before as usize].after = after;
        self.links[after as usize].before = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_leave_in_their_order_and_from_the_middle() {
        let mut list = NumberList::new(4);
        assert_eq!(list.first(), None);
        [2, 0, 3, 1].into_iter().for_each(|number| list.push(number));
        list.remove(3);
        assert_eq!([list.step(), list.step()], [Some(2), Some(0)]);
        list.remove(1);
        list.push(1);
        assert_eq!([list.step(), list.step()], [Some(2), Some(0)], "the number at the cursor has left");
        assert_eq!((list.step(), list.len()), (Some(1), 3));
        let mut order = Vec::new();
        while let Some(first) = list.first() {
            order.push(first);
            list.remove(first);
        }
        assert_eq!(order, [2, 0, 1]);
    }
}
