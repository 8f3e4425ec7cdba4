//! Where the files of a rule set come from.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use crate::text::decode;

/// The bytes of a rule set with everything that it includes. More is no rule set: a device, or files that include each
/// other many times.
const MOST_BYTES: u64 = 64 << 20;
/// What a file costs beside its bytes, so that not even empty ones are read for ever.
const FILE_COST: u64 = 4096;

/// Gives the text of the files that a rule set names.
pub trait RulesetFiles {
    fn read(&self, path: &str) -> io::Result<String>;
}

/// The files of this machine. As with pfctl, a relative path is one from the working directory, whichever file names it.
#[derive(Debug, Clone, Default)]
pub struct FileSystem {
    /// Taken instead of the working directory, unless it is empty.
    pub folder: PathBuf,
}

impl RulesetFiles for FileSystem {
    fn read(&self, path: &str) -> io::Result<String> {
        let mut text = Vec::new();
        File::open(self.folder.join(path))?.take(MOST_BYTES + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MOST_BYTES {
            return Err(too_large());
        }
        decode(text)
    }
}

/// Files that together have a bounded length.
pub(super) struct BoundedFiles<'a> {
    files: &'a dyn RulesetFiles,
    left: Cell<u64>,
}

impl<'a> BoundedFiles<'a> {
    pub fn new(files: &'a dyn RulesetFiles) -> BoundedFiles<'a> {
        BoundedFiles { files, left: Cell::new(MOST_BYTES) }
    }
}

impl RulesetFiles for BoundedFiles<'_> {
    fn read(&self, path: &str) -> io::Result<String> {
        let text = self.files.read(path)?;
        let left = self.left.get().checked_sub(text.len() as u64 + FILE_COST).ok_or_else(too_large)?;
        self.left.set(left);
        Ok(text)
    }
}

fn too_large() -> io::Error {
    let problem =
        format!("with all files that it includes the rule set is longer than {} MiB", MOST_BYTES >> 20);
    io::Error::new(io::ErrorKind::FileTooLarge, problem)
}
