//! The text of perf-script(1): for each sample a line with the thread, a line for each frame from the innermost to the
//! outermost, and an empty line.

use crate::error::ProfileError;

/// One stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub thread: u32,
    /// From the innermost to the outermost.
    pub frames: Vec<RawFrame>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawFrame {
    pub address: u64,
    /// As the symbol table of the file says it, mangled; `[unknown]` without one.
    pub symbol: String,
    /// The file that has the code, or the kernel.
    pub object: String,
}

pub fn samples(text: &str) -> Result<Vec<Sample>, ProfileError> {
    let mut samples: Vec<Sample> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let wrong = || ProfileError::Script { line: number + 1, text: line.chars().take(80).collect() };
        let words = line.trim();
        if words.is_empty() {
            continue;
        }
        if let Ok(thread) = words.parse() {
            samples.push(Sample { thread, frames: Vec::new() });
        } else {
            let sample = samples.last_mut().ok_or_else(wrong)?;
            sample.frames.push(frame(words).ok_or_else(wrong)?);
        }
    }
    Ok(samples)
}

/// `ADDRESS SYMBOL (OBJECT)`.
fn frame(words: &str) -> Option<RawFrame> {
    let (address, rest) = words.split_once(' ')?;
    let (symbol, object) = rest.rsplit_once(" (")?;
    Some(RawFrame {
        address: u64::from_str_radix(address, 16).ok()?,
        symbol: symbol.trim().to_owned(),
        object: object.strip_suffix(')')?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn samples_have_threads_and_frames() {
        let text =
            "   17 \n\t    55d0aa work+0x1 (/usr/bin/a b)\n\t    7f00 [unknown] ([vdso])\n\n   18 \n\n";
        let read = samples(text).unwrap();
        let frame = |address, symbol: &str, object: &str| RawFrame {
            address,
            symbol: symbol.into(),
            object: object.into(),
        };
        let frames = vec![frame(0x55d0aa, "work+0x1", "/usr/bin/a b"), frame(0x7f00, "[unknown]", "[vdso]")];
        assert_eq!(read, [Sample { thread: 17, frames }, Sample { thread: 18, frames: vec![] }]);
    }

    #[test]
    fn a_line_of_another_form_is_named() {
        for text in ["\tzz work (x)\n", "  7 \n\t55 work\n", "  7 \n\t55 work (x\n"] {
            assert!(matches!(samples(text), Err(ProfileError::Script { .. })), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "(?s).{0,200}") {
            let _ = samples(&text);
        }
    }
}
