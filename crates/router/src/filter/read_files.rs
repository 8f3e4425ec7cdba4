//! The files of a rule set as they were when they were read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

use fullview_filter::pf::files::RulesetFiles;

/// The text of files, by their paths.
#[derive(Debug, Clone, Default)]
pub struct ReadFiles(BTreeMap<String, String>);

impl RulesetFiles for ReadFiles {
    fn read(&self, path: &str) -> io::Result<String> {
        self.0.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Reads files of another source, and keeps their text.
pub struct RecordingFiles<'a> {
    source: &'a dyn RulesetFiles,
    read: RefCell<ReadFiles>,
}

impl<'a> RecordingFiles<'a> {
    pub fn new(source: &'a dyn RulesetFiles) -> RecordingFiles<'a> {
        RecordingFiles { source, read: RefCell::default() }
    }

    pub fn read_files(&self) -> ReadFiles {
        self.read.borrow().clone()
    }
}

impl RulesetFiles for RecordingFiles<'_> {
    fn read(&self, path: &str) -> io::Result<String> {
        let text = self.source.read(path)?;
        self.read.borrow_mut().0.insert(path.to_owned(), text.clone());
        Ok(text)
    }
}
