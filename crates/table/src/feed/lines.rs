//! Numbered lines of bounded length.

use std::io::{BufRead, Read};

use super::error::{Fault, Located};

/// The longest line accepted, in bytes: a hundred times the length of a route, and small enough to keep in memory.
const LIMIT: usize = 8192;

/// Reads a text line by line into one buffer.
pub(super) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    number: u64,
    offset: u64,
}

/// One line without its line end, comment and surrounding blanks.
pub(super) struct Line<'a> {
    pub(super) number: u64,
    pub(super) content: &'a str,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Lines { input, buffer: Vec::with_capacity(LIMIT + 1), number: 0, offset: 0 }
    }

    /// The number of lines read so far.
    pub(super) fn count(&self) -> u64 {
        self.number
    }

    /// The next line that has content; `None` at the end.
    pub(super) fn next_line(&mut self) -> Result<Option<Line<'_>>, Located> {
        while self.fill()? {
            let number = self.number;
            let bounds = content(&self.buffer).map_err(|fault| fault.at_line(number))?;
            if !bounds.is_empty() {
                let content = self.buffer.get(bounds).and_then(|bytes| std::str::from_utf8(bytes).ok());
                let content = content.ok_or_else(|| Fault::NotText.at_line(number))?;
                return Ok(Some(Line { number, content }));
            }
        }
        Ok(None)
    }

    /// Reads one line, but no more of it than shows that it is too long; false at the end of the input.
    fn fill(&mut self) -> Result<bool, Located> {
        self.buffer.clear();
        let mut bounded = self.input.by_ref().take(LIMIT as u64 + 1);
        let count = bounded.read_until(b'\n', &mut self.buffer);
        let count = count.map_err(|error| Fault::Read(error).at_byte(self.offset))?;
        self.offset += count as u64;
        self.number += u64::from(count > 0);
        if count > LIMIT {
            return Err(self.overlong().at_line(self.number));
        }
        Ok(count > 0)
    }

    /// The fault of a line that is too long: binary data has no line ends, so it is reported as such.
    fn overlong(&self) -> Fault {
        match content(&self.buffer) {
            Ok(_) => Fault::LineTooLong { limit: LIMIT },
            Err(not_text) => not_text,
        }
    }
}

/// The range of the content in `line`. Bytes that are not text are refused in comments too.
fn content(line: &[u8]) -> Result<std::ops::Range<usize>, Fault> {
    if line.iter().any(|byte| *byte < b' ' && !byte.is_ascii_whitespace()) {
        return Err(Fault::NotText);
    }
    let text = line.split(|byte| *byte == b'#').next().unwrap_or_default();
    let start = text.len() - text.trim_ascii_start().len();
    Ok(start..start + text.trim_ascii().len())
}
