//! The text of perf-script(1): for each sample a line with the thread, a line for each frame from the innermost to the
//! outermost, and an empty line. Frames are indented by a tab.

use crate::error::ProfileError;

/// One stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The name of the thread.
    pub name: String,
    pub process: u32,
    pub thread: u32,
    /// Where it was taken.
    pub core: Option<usize>,
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

/// What perf prints in place of samples that it had no room for, in lines that end with their number.
const LOST: &str = " PERF_RECORD_LOST";

pub fn samples(text: &str) -> Result<Vec<Sample>, ProfileError> {
    let mut samples: Vec<Sample> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let wrong = || ProfileError::Script { line: number + 1, text: line.chars().take(80).collect() };
        let words = line.trim();
        if words.is_empty() || line.contains(LOST) {
            continue;
        }
        if line.starts_with('\t') {
            let sample = samples.last_mut().ok_or_else(wrong)?;
            sample.frames.push(frame(words).ok_or_else(wrong)?);
        } else {
            samples.push(thread(words).ok_or_else(wrong)?);
        }
    }
    Ok(samples)
}

/// Samples that perf lost at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Where they were taken, if perf says it.
    pub core: Option<usize>,
    pub samples: u64,
}

pub fn lost(text: &str) -> Vec<Lost> {
    let of_line = |line: &str| {
        let (place, count) = line.split_once(LOST)?;
        let samples = count.split_whitespace().last()?.parse().ok()?;
        Some(Lost { core: core(place.trim_end()).1, samples })
    };
    text.lines().filter_map(of_line).collect()
}

/// `NAME PROCESS/THREAD [CORE]`; the name may have spaces, and a thread that ends has the number -1.
fn thread(words: &str) -> Option<Sample> {
    let (words, core) = core(words);
    let (name, numbers) = words.rsplit_once(' ')?;
    let (process, thread) = numbers.split_once('/')?;
    let [process, thread] = [process, thread].map(|number| Some(number.parse::<i32>().ok()?.cast_unsigned()));
    Some(Sample {
        name: name.trim().to_owned(),
        process: process?,
        thread: thread?,
        core,
        frames: Vec::new(),
    })
}

/// The core at the end of a line that has one, and what stands before it.
fn core(words: &str) -> (&str, Option<usize>) {
    let parts = words.rsplit_once(' ').and_then(|(before, last)| {
        let number = last.strip_prefix('[')?.strip_suffix(']')?;
        Some((before.trim_end(), number.parse().ok()))
    });
    parts.unwrap_or((words, None))
}

/// What the kernel writes after the name of a file that is not there any more.
const DELETED: &str = " (deleted)";

/// `ADDRESS SYMBOL (OBJECT)`.
fn frame(words: &str) -> Option<RawFrame> {
    let (address, rest) = words.split_once(' ')?;
    let rest = rest.strip_suffix(')')?;
    let is_deleted = rest.ends_with(DELETED);
    let (symbol, object) = rest.strip_suffix(DELETED).unwrap_or(rest).rsplit_once(" (")?;
    Some(RawFrame {
        address: u64::from_str_radix(address, 16).ok()?,
        symbol: symbol.trim().to_owned(),
        // The file that has the name now is another one.
        object: if is_deleted { format!("{object}{DELETED}") } else { object.to_owned() },
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn samples_have_threads_and_frames() {
        assert_eq!(samples(":-1  4871/-1    \n\n").unwrap()[0].thread, u32::MAX);
        let text = "a b  1/17 \n\t    55d0aa work+0x1 (/usr/bin/a b)\n\t    7f00 [unknown] ([vdso])\n\n  c 18/18 \n\n";
        let read = samples(text).unwrap();
        let frame = |address, symbol: &str, object: &str| RawFrame {
            address,
            symbol: symbol.into(),
            object: object.into(),
        };
        let frames = vec![frame(0x55d0aa, "work+0x1", "/usr/bin/a b"), frame(0x7f00, "[unknown]", "[vdso]")];
        let sample = |name: &str, process, thread, frames| Sample {
            name: name.into(),
            process,
            thread,
            core: None,
            frames,
        };
        assert_eq!(read, [sample("a b", 1, 17, frames), sample("c", 18, 18, vec![])]);
        let on_core = samples("a [x]  1/17 [003] \n\n").unwrap();
        assert_eq!((on_core[0].name.as_str(), on_core[0].core), ("a [x]", Some(3)));
    }

    #[test]
    fn files_that_were_deleted_are_objects_too() {
        for (line, symbol, object) in [
            ("7f00 work+0x1 (/usr/bin/a (deleted))", "work+0x1", "/usr/bin/a (deleted)"),
            ("7f00 [unknown] (/memfd:x (deleted))", "[unknown]", "/memfd:x (deleted)"),
        ] {
            let read = frame(line).unwrap();
            assert_eq!((read.symbol.as_str(), read.object.as_str()), (symbol, object));
        }
    }

    #[test]
    fn a_line_of_another_form_is_named() {
        let wrong = ["\tzz work (x)\n", "a 7/7 \n\t55 work\n", "a 7/7 \n\t55 work (x\n", "a 7\n", "7/7\n"];
        for text in wrong {
            assert!(matches!(samples(text), Err(ProfileError::Script { .. })), "{text:?}");
        }
    }

    #[test]
    fn lost_samples_are_counted_and_are_no_samples() {
        let text =
            " a  1/1 [003]  PERF_RECORD_LOST lost 10\n b 2/2 PERF_RECORD_LOST_SAMPLES lost 5\na 1/1 \n\n";
        let (here, somewhere) = (Lost { core: Some(3), samples: 10 }, Lost { core: None, samples: 5 });
        assert_eq!((samples(text).unwrap().len(), lost(text)), (1, vec![here, somewhere]));
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "(?s).{0,200}") {
            let _ = samples(&text);
        }
    }
}
