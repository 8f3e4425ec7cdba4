//! The names of functions: those of this program with everything that was inlined, others as perf found them.

use std::fs;
use std::path::PathBuf;

use addr2line::Loader;
use serde::{Deserialize, Serialize};

use crate::error::ProfileError;
use crate::image::Image;
use crate::script::RawFrame;

/// The symbols of this program.
pub struct Symbols {
    loader: Loader,
    program: PathBuf,
    image: Image,
}

impl Symbols {
    pub fn of_this_program() -> Result<Symbols, ProfileError> {
        Symbols::of_process("self")
    }

    /// Those of the first process that runs this program, where it is in that process's memory; else of this process.
    pub fn of_one(processes: &[u32]) -> Result<Symbols, ProfileError> {
        let exe = |process: &str| fs::read_link(format!("/proc/{process}/exe")).ok();
        let own = exe("self");
        let names = processes.iter().map(u32::to_string);
        let first = names.into_iter().find(|process| own.is_some() && exe(process) == own);
        Symbols::of_process(first.as_deref().unwrap_or("self"))
    }

    fn of_process(process: &str) -> Result<Symbols, ProfileError> {
        let program = std::env::current_exe().map_err(ProfileError::file("/proc/self/exe"))?;
        let path = format!("/proc/{process}/maps");
        let maps = fs::read_to_string(&path).map_err(ProfileError::file(&path))?;
        let image = Image::of(&maps, &program.display().to_string());
        let loader = Loader::new(&program)
            .map_err(|error| ProfileError::Symbols { path: program.clone(), said: error.to_string() })?;
        Ok(Symbols { loader, program, image })
    }

    /// The functions of a frame, from the outermost to the innermost. `is_leaf` says that the address is where the sample
    /// was taken, and not one to return to, which is behind the call.
    pub fn functions(&self, frame: &RawFrame, is_leaf: bool) -> Vec<Function> {
        let is_own = self.program.as_os_str() == frame.object.as_str();
        let address = self.image.linked(frame.address).filter(|_| is_own);
        let own =
            address.map_or_else(Vec::new, |address| self.own(address.wrapping_sub(u64::from(!is_leaf))));
        if own.is_empty() { vec![foreign(frame)] } else { own }
    }

    /// The function of the symbol table, and those that the debug information says were inlined into it.
    fn own(&self, address: u64) -> Vec<Function> {
        let mut functions = self.inlined(address);
        let Some(symbol) = self.loader.find_symbol(address) else { return functions };
        let outermost = functions.pop();
        let file = outermost.and_then(|function| function.file);
        functions.push(Function { name: sanitized(&addr2line::demangle_auto(symbol.into(), None)), file });
        functions.reverse();
        functions
    }

    /// From the innermost to the outermost, which is not inlined. Small debug information names them without their modules.
    fn inlined(&self, address: u64) -> Vec<Function> {
        let mut functions = Vec::new();
        let Ok(mut frames) = self.loader.find_frames(address) else { return functions };
        while let Ok(Some(frame)) = frames.next() {
            // The outermost has no name here if nothing is inlined into it; the symbol table has.
            let name = frame.function.and_then(|name| Some(name.demangle().ok()?.into_owned()));
            let name = name.unwrap_or_else(|| UNKNOWN.to_owned());
            let file = frame.location.and_then(|location| location.file).map(str::to_owned);
            functions.push(Function { name: with_file(&sanitized(&name), file.as_deref()), file });
        }
        functions
    }
}

/// A function, and the file of its source if that is known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Function {
    pub name: String,
    pub file: Option<String>,
}

impl Function {
    /// Whether it has no name, whatever is known of its file.
    pub(crate) fn is_unknown(&self) -> bool {
        self.name.starts_with(UNKNOWN)
    }
}

/// A name without a module says little: the last two parts of the file's path follow it.
fn with_file(name: &str, file: Option<&str>) -> String {
    match file.filter(|_| !name.contains("::")) {
        None => name.to_owned(),
        Some(file) => {
            let parts: Vec<&str> = file.rsplit('/').take(2).collect();
            format!("{name} ({})", parts.into_iter().rev().collect::<Vec<_>>().join("/"))
        }
    }
}

/// A function of the kernel, or of a library.
fn foreign(frame: &RawFrame) -> Function {
    // Modules and BPF programs have objects of their own, in the kernel's half of the addresses.
    let is_kernel = frame.object.starts_with("[kernel") || frame.address >> 63 == 1;
    let name = match (frame.symbol.as_str(), is_kernel) {
        ("[unknown]", _) => UNKNOWN.into(),
        (symbol, true) => format!("{symbol}_[k]"),
        (symbol, false) => sanitized(symbol),
    };
    Function { name, file: is_kernel.then(|| format!("{KERNEL}/{}", frame.symbol)) }
}

/// The start of the file of what the kernel does; the function's name follows.
pub const KERNEL: &str = "[kernel]";

/// The name of a function that has none.
pub const UNKNOWN: &str = "[unknown]";

/// A name without what separates functions and counts in folded stacks.
pub(crate) fn sanitized(name: &str) -> String {
    name.replace(';', ":").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn a_function_of_the_test() -> usize {
        std::hint::black_box(7)
    }

    #[test]
    fn a_name_without_a_module_has_its_file() {
        assert_eq!(with_file("next", Some("/a/b/c.rs")), "next (b/c.rs)");
        assert_eq!(with_file("a::next", Some("/a/b/c.rs")), "a::next");
        assert_eq!(with_file("next", None), "next");
    }

    #[test]
    fn functions_of_this_program_have_their_names() {
        let symbols = Symbols::of_this_program().unwrap();
        let address = a_function_of_the_test as *const () as u64;
        let object = symbols.program.display().to_string();
        let frame = RawFrame { address, symbol: UNKNOWN.into(), object };
        let functions = symbols.functions(&frame, true);
        let Function { name, file } = functions.last().unwrap();
        assert!(name.ends_with("a_function_of_the_test"), "{functions:?}");
        assert!(file.as_deref().is_some_and(|file| file.ends_with("src/symbols.rs")), "{functions:?}");
        assert_eq!(a_function_of_the_test(), 7);
    }
}
