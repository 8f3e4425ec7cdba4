//! What was counted from a real table: read from the data files beside this module, and written by
//! `examples/synthetic_parameters.rs`.
//!
//! A file is text. `#` begins a comment line. One line each follows for the blocks, the tail and the lengths, then two
//! lines for each level:
//!
//! ```text
//! blocks HEAD:ROUTES …
//! tail LENGTH:ROUTES …
//! lengths ROUTES …
//! own CASE:SHARE,SHARE …
//! halves CASE:LOWER,ALIKE:EMPTIER,EMPTIER,… …
//! ```

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::iter::{Enumerate, Peekable};
use std::str::{FromStr, Lines};

/// All counts of one family, as [`Shape`](super::Shape) explains them.
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

/// How blocks of one length are filled: a row for each [`case`](super::case) that the real table has there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Which blocks are routes.
    pub own: Vec<Own>,
    /// How the routes inside are divided between the halves of a block.
    pub halves: Vec<Halves>,
}

/// Which blocks are routes, among those with so many routes and so covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// The [`case`](super::case) of these blocks, their own routes included.
    pub case: u16,
    /// The share that are a route, in per mille: of the blocks unlike their sibling, and of copies of their sibling.
    pub share: [u16; 2],
}

/// How the routes inside are divided between the halves, in blocks with so many and so covered; all in per mille.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halves {
    /// The [`case`](super::case) of these blocks without their own routes.
    pub case: u16,
    /// Those whose emptier half has which [`share`](super::share).
    pub emptier: Cow<'static, [u16]>,
    /// Of those with uneven halves, those whose lower half is the fuller one.
    pub lower: u16,
    /// Of those with equally full halves, those whose halves are exact copies of each other.
    pub alike: u16,
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

/// A file that does not hold such counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected `{expected}`; count again with the example `synthetic_parameters`")]
pub struct CountsError {
    /// The line, counted from 1.
    pub line: usize,
    /// The form that the line should have.
    pub expected: &'static str,
}

impl FromStr for Counted {
    type Err = CountsError;

    fn from_str(text: &str) -> Result<Counted, CountsError> {
        let mut lines = CountLines { lines: text.lines().enumerate().peekable(), last: 0 };
        let blocks = lines.items("blocks HEAD:ROUTES …", |item| pair(item, ':'))?;
        let tail = lines.items("tail LENGTH:ROUTES …", |item| pair(item, ':'))?;
        let lengths = lines.items("lengths ROUTES …", |item| item.parse().ok())?;
        let mut levels = Vec::new();
        while !lines.at_end() {
            levels.push(Level {
                own: lines.items("own CASE:SHARE,SHARE …", own)?,
                halves: lines.items("halves CASE:LOWER,ALIKE:EMPTIER,… …", halves)?,
            });
        }
        Ok(Counted { blocks, tail, lengths, levels })
    }
}

/// The lines of a file that are no comments.
struct CountLines<'t> {
    lines: Peekable<Enumerate<Lines<'t>>>,
    /// The number of the last line read, counted from 1.
    last: usize,
}

impl CountLines<'_> {
    fn at_end(&mut self) -> bool {
        while self.lines.next_if(|(_, line)| line.starts_with('#')).is_some() {}
        self.lines.peek().is_none()
    }

    /// Reads the items of the next line, which begins with the first word of `expected`.
    fn items<T>(
        &mut self,
        expected: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, CountsError> {
        let next = if self.at_end() { None } else { self.lines.next() };
        self.last = next.map_or(self.last + 1, |(index, _)| index + 1);
        let mut words = next.map_or("", |(_, line)| line).split_whitespace();
        let is_named = words.next().is_some_and(|name| expected.split(' ').next() == Some(name));
        let items = if is_named { words.map(read).collect() } else { None };
        items.ok_or(CountsError { line: self.last, expected })
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
    use super::super::{COUNTED_INET, COUNTED_INET6, INET, INET6};
    use super::*;

    #[test]
    fn both_files_are_read_whole() {
        for (shape, text) in [(&INET, COUNTED_INET), (&INET6, COUNTED_INET6)] {
            let counts: String = text.split_inclusive('\n').filter(|line| !line.starts_with('#')).collect();
            assert_eq!(shape.counted.to_string(), counts);
            assert_eq!(shape.counted.levels.len(), usize::from(shape.bulk_len - shape.block_len) + 1);
        }
    }

    #[test]
    fn an_error_names_the_line_and_its_form() {
        let right = "blocks 1:2\ntail 25:1\nlengths 3\nown 0:1,2\nhalves 4:5,6:7,8\n";
        let counted: Counted = right.parse().unwrap();
        assert_eq!((counted.levels[0].halves[0].emptier.len(), counted.to_string().as_str()), (2, right));
        assert_eq!(format!("# a comment\n{right}# another\n").parse(), Ok(counted));
        let line =
            |from: &str, to: &str| right.replace(from, to).parse::<Counted>().map_err(|error| error.line);
        assert_eq!(line("1:2", "1;2"), Err(1));
        assert_eq!(line("25", "256"), Err(2));
        assert_eq!(line("own", "owned"), Err(4));
        assert_eq!(line("5,6:", "5,6"), Err(5));
        assert_eq!(line("halves 4:5,6:7,8\n", ""), Err(5));
        let error = "# a comment\nblocks 1\n".parse::<Counted>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 2: expected `blocks HEAD:ROUTES …`; count again with the example `synthetic_parameters`"
        );
        assert_eq!("".parse::<Counted>().map_err(|error| error.line), Err(1));
    }
}
