//! What was counted from a real table, as text: `examples/synthetic_parameters.rs` writes it, programs read it when they
//! make a table. A line each for blocks, tail and lengths, then two for each level:
//!
//! ```text
//! blocks HEAD:ROUTES …
//! tail LENGTH:ROUTES …
//! lengths ROUTES …
//! own CASE:SHARE,SHARE …
//! halves CASE:LOWER,ALIKE:EMPTIER,EMPTIER,… …
//! ```

use std::fmt::{self, Display, Formatter};
use std::iter::Peekable;
use std::str::FromStr;

use super::{Halves, Level, Own};

/// All counts of one family, as [`super::Shape`] explains them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The blocks that hold routes, and how many up to the bulk length each holds.
    pub blocks: Vec<(u16, u32)>,
    /// Routes of the tail by length.
    pub tail: Vec<(u8, u32)>,
    /// Routes up to the bulk length, by length from that of the blocks on.
    pub lengths: Vec<u32>,
    /// How blocks of each of these lengths are filled.
    pub levels: Vec<Level>,
}

impl Display for Counted {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        line(f, "blocks", &self.blocks, |(head, routes)| format!("{head}:{routes}"))?;
        line(f, "tail", &self.tail, |(len, routes)| format!("{len}:{routes}"))?;
        line(f, "lengths", &self.lengths, u32::to_string)?;
        self.levels.iter().try_for_each(|level| {
            line(f, "own", &level.own, |Own { case, share }| format!("{case}:{}", joined(share)))?;
            line(f, "halves", &level.halves, |Halves { case, emptier, lower, alike }| {
                format!("{case}:{lower},{alike}:{}", joined(emptier))
            })
        })
    }
}

fn line<T>(f: &mut Formatter<'_>, name: &str, items: &[T], text: impl Fn(&T) -> String) -> fmt::Result {
    f.write_str(name)?;
    items.iter().try_for_each(|item| write!(f, " {}", text(item)))?;
    f.write_str("\n")
}

fn joined(numbers: &[u16]) -> String {
    numbers.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
}

/// Text that is none of these counts: the line, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {0} is not what was counted")]
pub struct NotCounted(pub usize);

impl FromStr for Counted {
    type Err = NotCounted;

    fn from_str(text: &str) -> Result<Counted, NotCounted> {
        let mut lines = Lines { lines: text.lines().peekable(), number: 0 };
        let blocks = lines.items("blocks", |item| pair(item, ':'))?;
        let tail = lines.items("tail", |item| pair(item, ':'))?;
        let lengths = lines.items("lengths", |item| item.parse().ok())?;
        let mut levels = Vec::new();
        while lines.lines.peek().is_some() {
            levels.push(Level { own: lines.items("own", own)?, halves: lines.items("halves", halves)? });
        }
        Ok(Counted { blocks, tail, lengths, levels })
    }
}

struct Lines<'t> {
    lines: Peekable<std::str::Lines<'t>>,
    number: usize,
}

impl Lines<'_> {
    /// The items of the next line, which has that name.
    fn items<T>(&mut self, name: &str, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, NotCounted> {
        self.number += 1;
        let items = self.lines.next().and_then(|line| line.strip_prefix(name));
        let items = items.and_then(|items| items.split_whitespace().map(read).collect());
        items.ok_or(NotCounted(self.number))
    }
}

fn pair<T: FromStr, U: FromStr>(text: &str, by: char) -> Option<(T, U)> {
    let (one, other) = text.split_once(by)?;
    Some((one.parse().ok()?, other.parse().ok()?))
}

fn own(text: &str) -> Option<Own> {
    let (case, shares) = text.split_once(':')?;
    let (single, copied) = pair(shares, ',')?;
    Some(Own { case: case.parse().ok()?, share: [single, copied] })
}

fn halves(text: &str) -> Option<Halves> {
    let (case, rest) = text.split_once(':')?;
    let (parts, emptier) = rest.split_once(':')?;
    let (lower, alike) = pair(parts, ',')?;
    let emptier = emptier.split(',').map(|share| share.parse().ok()).collect::<Option<_>>()?;
    Some(Halves { case: case.parse().ok()?, emptier, lower, alike })
}

#[cfg(test)]
mod tests {
    use super::super::{INET, INET6};
    use super::*;

    #[test]
    fn what_is_written_is_what_was_read() {
        for (shape, text) in [(&INET, super::super::COUNTED_INET), (&INET6, super::super::COUNTED_INET6)] {
            assert_eq!(shape.counted.to_string(), text);
            assert_eq!(shape.counted.levels.len(), usize::from(shape.bulk_len - shape.block_len) + 1);
        }
    }

    #[test]
    fn the_line_that_is_wrong_is_named() {
        let right = "blocks 1:2\ntail 25:1\nlengths 3\nown 0:1,2\nhalves 4:5,6:7,8\n";
        let counted: Counted = right.parse().unwrap();
        assert_eq!((counted.levels[0].halves[0].emptier.len(), counted.to_string().as_str()), (2, right));
        let wrong = |from: &str, to: &str| right.replace(from, to).parse::<Counted>();
        assert_eq!(wrong("1:2", "1;2"), Err(NotCounted(1)));
        assert_eq!(wrong("25", "256"), Err(NotCounted(2)));
        assert_eq!(wrong("own", "owned"), Err(NotCounted(4)));
        assert_eq!(wrong("5,6:", "5,6"), Err(NotCounted(5)));
        assert_eq!(wrong("halves 4:5,6:7,8\n", ""), Err(NotCounted(5)));
        assert_eq!("".parse::<Counted>(), Err(NotCounted(1)));
    }
}
