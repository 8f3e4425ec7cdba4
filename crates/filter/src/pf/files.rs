//! Where the files of a rule set come from.

use std::io;
use std::path::PathBuf;

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
        std::fs::read_to_string(self.folder.join(path))
    }
}
