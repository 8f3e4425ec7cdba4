//! The files of a result directory. A file that cannot be used is named with the reason.

use std::fs;
use std::path::{Path, PathBuf};

use fullview_lab::ministat;

use crate::callgraph::{self, CallGraph};
use crate::error::{ImportError, LineError, Problem, whole};
use crate::info::{self, Info};
use crate::name::RunName;
use crate::plotted::{self, PlottedRow};
use crate::{equilibrium, pktgen};

/// One run of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct RawRun {
    pub name: RunName,
    pub value: f64,
    pub unit: String,
    /// Seconds of the generator's clock, modulo 1000.
    pub clock: Option<f64>,
    pub drift: f64,
    /// Seconds without packets, which the value leaves out.
    pub silent: usize,
}

/// A published column of medians.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: String,
    pub path: PathBuf,
    pub values: Vec<f64>,
}

#[derive(Debug, Default)]
pub struct Folder {
    pub readme: String,
    pub runs: Vec<RawRun>,
    /// Runs whose logs were skipped: their medians may have been published.
    pub unread: Vec<RunName>,
    /// What pkt-gen sent in a run, in packets per second.
    pub offered: Vec<(RunName, f64)>,
    pub plotted: Vec<PlottedRow>,
    pub columns: Vec<Column>,
    pub infos: Vec<Info>,
    pub graphs: Vec<(String, CallGraph)>,
    pub skipped: Vec<String>,
}

impl Folder {
    pub fn read(path: &Path) -> Result<Folder, ImportError> {
        let mut folder = Folder::default();
        let raw = path.join("RAW");
        let mut files = files(path)?;
        if raw.is_dir() {
            files.extend(self::files(&raw)?);
        }
        for file in files {
            if let Err(reason) = folder.take(path, &file) {
                let name = file.strip_prefix(path).unwrap_or(&file);
                folder.skipped.push(format!("{}: {reason}", name.display()));
            }
        }
        folder.runs.sort_by(|one, other| {
            (&one.name.series, one.name.run).cmp(&(&other.name.series, other.name.run))
        });
        Ok(folder)
    }

    fn take(&mut self, folder: &Path, file: &Path) -> Result<(), String> {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let raw = file.parent() != Some(folder);
        let text = || fs::read(file).map_err(|error| format!("cannot read: {error}")).and_then(as_text);
        match name.as_str() {
            "README.md" if !raw => self.readme = text()?,
            _ if name.ends_with(".receiver") => {
                self.take_run(&name, text().and_then(|text| receiver(&text).map_err(said)))?;
            }
            _ if name.ends_with(".sender") => {
                let text = text()?;
                if equilibrium::is_equilibrium(&text) {
                    self.take_run(&name, searched(&text).map_err(said))?;
                } else {
                    let sent = pktgen::parse(&text).map_err(said)?.median();
                    self.offered.push((run_name(&name)?, sent));
                }
            }
            _ if name.ends_with(".info") => self.infos.push(info::parse(&text()?).map_err(said)?),
            _ if name.ends_with(".graph") => {
                self.graphs.push((name, callgraph::parse(&text()?).map_err(said)?));
            }
            _ if name.ends_with(".data") => self.plotted.extend(plotted::rows(&name, &text()?)),
            _ if name.ends_with(".pps") || (!raw && !has_other_use(&name)) => {
                self.columns.push(column(&name, file, &text()?).map_err(said)?);
            }
            _ => {}
        }
        Ok(())
    }

    fn take_run(&mut self, name: &str, run: Result<Measured, String>) -> Result<(), String> {
        let name = run_name(name)?;
        match run {
            Ok(_) if self.has_run(&name) => {
                Err("another file has the same number of the run: name each run by a number of its own"
                    .into())
            }
            Ok(Measured { value, unit, clock, drift, silent }) => {
                self.runs.push(RawRun { name, value, unit, clock, drift, silent });
                Ok(())
            }
            Err(reason) => {
                self.unread.push(name);
                Err(reason)
            }
        }
    }

    /// Whether a run of this number is known: `01` and `1` are one.
    fn has_run(&self, name: &RunName) -> bool {
        self.runs.iter().any(|known| (&known.name.series, known.name.run) == (&name.series, name.run))
    }

    /// Reads only the columns of the directories beside this one.
    pub fn columns_beside(path: &Path) -> Vec<Column> {
        let Some(parent) = path.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned)) else {
            return Vec::new();
        };
        let folders = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut folders: Vec<PathBuf> = folders.filter(|path| path.is_dir()).collect();
        folders.sort();
        let inside = folders.iter().flat_map(|folder| files(folder).unwrap_or_default());
        inside
            .filter_map(|file| {
                let name = file.file_name()?.to_str()?;
                let text = name.ends_with(".pps").then(|| fs::read_to_string(&file).ok()).flatten()?;
                column(name, &file, &text).ok()
            })
            .collect()
    }
}

fn run_name(name: &str) -> Result<RunName, String> {
    RunName::parse(name)
        .ok_or_else(|| "its name has no number of a run: name it bench.SERIES.RUN.receiver".into())
}

/// What a log says about its run.
struct Measured {
    value: f64,
    unit: String,
    clock: Option<f64>,
    drift: f64,
    silent: usize,
}

fn receiver(text: &str) -> Result<Measured, LineError> {
    let log = pktgen::parse(text)?;
    Ok(Measured {
        value: log.median(),
        unit: "pps".into(),
        clock: Some(log.clock),
        drift: log.drift(),
        silent: log.silent(),
    })
}

fn searched(text: &str) -> Result<Measured, LineError> {
    let found = equilibrium::parse(text)?;
    Ok(Measured { value: found.rate, unit: found.unit, clock: None, drift: 0.0, silent: 0 })
}

fn column(name: &str, path: &Path, text: &str) -> Result<Column, LineError> {
    whole(text)?;
    let number = |error: ministat::ParseError| LineError {
        line: error.line,
        problem: Problem::Number { token: error.token },
    };
    let values = ministat::parse(text.as_bytes(), 1, b" \t").map_err(number)?;
    match values.len() {
        0 => Err(LineError { line: 1, problem: Problem::Empty }),
        1 if !name.ends_with(".pps") => {
            Err(LineError { line: 1, problem: Problem::Foreign { expected: "a column of medians" } })
        }
        _ => Ok(Column { name: name.trim_end_matches(".pps").into(), path: path.into(), values }),
    }
}

/// Whether a file beside the README is no column of medians. Before 2016 such columns had names like `296935.forwarding`.
fn has_other_use(name: &str) -> bool {
    if !name.contains('.') {
        return true;
    }
    let used = [".data", ".plt", ".png", ".svg", ".md", ".max", ".stack", ".json", ".toml", ".jsonl", ".txt"];
    name.starts_with('.') || name.starts_with("bench.") || used.iter().any(|ending| name.ends_with(ending))
}

fn as_text(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line}: this is not text in UTF-8: correct it, or move the file elsewhere")
    })
}

fn said(error: LineError) -> String {
    error.to_string()
}

fn files(path: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let failed = |source| ImportError::Read { path: path.into(), source };
    let entries = fs::read_dir(path).map_err(failed)?;
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files)
}
