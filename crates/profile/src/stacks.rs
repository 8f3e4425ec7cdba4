//! Equal stacks, counted.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::script::Sample;
use crate::symbols::{Function, Symbols};
use crate::window::MARK;

/// How often each stack was seen, with its functions from the outermost, the caller of the work, to the innermost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "CountedStacks", into = "CountedStacks")]
pub struct Stacks(BTreeMap<Vec<Function>, u64>);

/// The same as a list, because keys of JSON are words.
type CountedStacks = Vec<(Vec<Function>, u64)>;

impl From<CountedStacks> for Stacks {
    fn from(stacks: CountedStacks) -> Stacks {
        stacks.into_iter().collect()
    }
}

impl From<Stacks> for CountedStacks {
    fn from(stacks: Stacks) -> CountedStacks {
        stacks.0.into_iter().collect()
    }
}

impl Stacks {
    /// The stacks of the work itself. What other threads did, and stacks that lead nowhere, are left out;
    /// [`crate::Quality`] counts them.
    pub(crate) fn of(samples: &[Sample], symbols: &Symbols) -> Stacks {
        let mut known = Known::new();
        let mut stacks = BTreeMap::new();
        for sample in samples {
            let functions = functions(sample, symbols, &mut known);
            if let Some(at) = functions.iter().position(|function| function.name.contains(MARK)) {
                *stacks.entry(functions[at + 1..].to_vec()).or_default() += 1;
            }
        }
        Stacks(stacks)
    }

    /// The whole stacks of samples, below names that `root` gives; samples without one are left out.
    pub(crate) fn rooted(
        samples: &[Sample],
        symbols: &Symbols,
        root: impl Fn(&Sample) -> Option<String>,
    ) -> Stacks {
        let mut known = Known::new();
        let mut stacks = BTreeMap::new();
        for sample in samples {
            let Some(name) = root(sample) else { continue };
            let mut all = vec![Function { name, file: None }];
            all.extend(functions(sample, symbols, &mut known));
            *stacks.entry(all).or_default() += 1;
        }
        Stacks(stacks)
    }

    /// The same, without what functions of this name call.
    pub fn cut_at(&self, name: &str) -> Stacks {
        let cut = |functions: &[Function]| {
            let place = functions.iter().position(|function| function.name == name);
            functions[..place.map_or(functions.len(), |place| place + 1)].to_vec()
        };
        let mut stacks = BTreeMap::new();
        self.iter().for_each(|(functions, count)| *stacks.entry(cut(functions)).or_default() += count);
        Stacks(stacks)
    }

    /// The share of samples with a function whose name holds one of these.
    pub fn share_with(&self, names: &[&str]) -> f64 {
        let holds = |function: &Function| names.iter().any(|name| function.name.contains(name));
        let with = self.iter().filter(|(functions, _)| functions.iter().any(holds));
        with.map(|(_, count)| count).sum::<u64>() as f64 / self.total().max(1) as f64
    }

    /// The number of samples.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Every stack with its number of samples.
    pub fn iter(&self) -> impl Iterator<Item = (&[Function], u64)> {
        self.0.iter().map(|(functions, count)| (&functions[..], *count))
    }
}

impl FromIterator<(Vec<Function>, u64)> for Stacks {
    fn from_iter<I: IntoIterator<Item = (Vec<Function>, u64)>>(stacks: I) -> Stacks {
        Stacks(stacks.into_iter().collect())
    }
}

/// One line for each stack, in the form that flame graphs are drawn from: functions with `;` between them, and the count.
impl fmt::Display for Stacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|(functions, count)| {
            let names: Vec<&str> = functions.iter().map(|function| function.name.as_str()).collect();
            writeln!(f, "{} {count}", names.join(";"))
        })
    }
}

/// Functions by the address and the object of a frame, and whether it is the innermost. Programs of a core have different
/// code at one address.
type Known<'s> = HashMap<(u64, &'s str, bool), Vec<Function>>;

fn functions<'s>(sample: &'s Sample, symbols: &Symbols, known: &mut Known<'s>) -> Vec<Function> {
    let mut all = Vec::new();
    for (depth, frame) in sample.frames.iter().enumerate().rev() {
        let is_leaf = depth == 0;
        let key = (frame.address, frame.object.as_str(), is_leaf);
        let functions = known.entry(key).or_insert_with(|| symbols.functions(frame, is_leaf));
        all.extend_from_slice(functions);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::RawFrame;

    #[test]
    fn two_programs_have_different_functions_at_one_address() {
        let sample = |object: &str, symbol: &str| {
            let frame = RawFrame { address: 0x40_1000, symbol: symbol.into(), object: object.into() };
            Sample { name: "x".into(), process: 1, thread: 1, core: None, frames: vec![frame] }
        };
        let samples = [sample("/bin/a", "receive"), sample("/bin/b", "log")];
        let symbols = Symbols::of_this_program().unwrap();
        let stacks = Stacks::rooted(&samples, &symbols, |_| Some("core".into()));
        assert_eq!(stacks.to_string(), "core;log 1\ncore;receive 1\n");
    }
}
