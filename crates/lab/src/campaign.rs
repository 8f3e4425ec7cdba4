//! A campaign read from its results folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::archive::{CAMPAIGN, HOST, RUNS, read_json};
use crate::error::{ArchiveError, LabError};
use crate::experiment::Experiment;
use crate::host::Provenance;
use crate::journal::{self, Records};

/// The content of a results folder, read without locking it. Reports are made from this alone.
#[derive(Debug)]
pub(crate) struct Campaign {
    pub(crate) folder: PathBuf,
    pub(crate) experiment: Experiment<toml::Table>,
    pub(crate) provenance: Provenance,
    pub(crate) records: Records,
}

impl Campaign {
    pub(crate) fn read(folder: &Path) -> Result<Self, LabError> {
        let path = folder.join(CAMPAIGN);
        let text = fs::read_to_string(&path).map_err(|source| ArchiveError::read(&path, source))?;
        let experiment = Experiment::parse(&path.display().to_string(), &text)?;
        let provenance = read_json(&folder.join(HOST))?;
        let records = journal::read(&folder.join(RUNS))?;
        Ok(Self { folder: folder.into(), experiment, provenance, records })
    }
}
