//! The commands, one in each file, and the exit codes that they share.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;
use fullview_lab::ArchiveError;
use fullview_plane::port::PortError;
use fullview_plane::port::pcap::CaptureReader;

use crate::args::{Cli, ManArgs};
use fullview_router::config::ConfigError;
use fullview_router::error::BadInput;
use fullview_router::privileges::PrivilegeError;
use output::stdout;

pub mod aa;
mod against;
pub mod bench;
pub mod calibrate;
mod campaign;
pub mod capture_drops;
pub mod compare;
pub mod export;
pub mod filter;
pub mod forward;
pub mod generate;
mod host_facts;
pub mod import;
mod listing;
mod noise_table;
mod other_build;
mod output;
pub mod plan;
pub mod profile;
mod profile_parts;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod rates;
#[cfg(all(feature = "bpf", target_os = "linux"))]
mod rates_profile;
pub mod reload;
pub mod report;
pub mod route;
pub mod serve;
mod shared_program;
pub mod show;
mod show_filter;
mod show_states;
pub mod table;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod testbed;
pub mod trace;

type Cause = dyn std::error::Error + 'static;

/// How the program ends. `fullview --help` documents the codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done,
    Failed,
    BadInput,
    Invalid,
    Worse,
    /// The same program twice has two rates.
    Untrusted,
    Interrupted,
    /// A code of ministat's, which is FreeBSD's.
    Code(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::BadInput => 2,
            Exit::Invalid => 3,
            Exit::Worse => 4,
            Exit::Untrusted => 5,
            Exit::Interrupted => 130,
            Exit::Code(code) => code,
        })
    }
}

/// The exit code of a failure: bad input has a code of its own.
pub fn exit_of(error: &anyhow::Error) -> Exit {
    let bad = error.chain().any(|cause| {
        cause.is::<BadInput>()
            || cause.is::<ConfigError>()
            || cause.is::<fullview_lab::ExperimentError>()
            || cause.is::<fullview_lab::UnknownCounter>()
            || cause.is::<fullview_lab::compare::CompareError>()
            || cause.is::<fullview_table::feed::FeedError>()
            || cause.is::<fullview_filter::pf::error::PfError>()
            || cause.is::<fullview_filter::ipfw::IpfwError>()
            || cause.is::<fullview_router::filter::FilterError>()
            || is_bad_user(cause)
            || is_bad_import(cause)
            || is_bad_capture(cause)
            || is_bad_archive(cause)
    });
    if bad { Exit::BadInput } else { Exit::Failed }
}

/// Opens a capture file that the user named.
fn open_capture(path: &Path) -> anyhow::Result<CaptureReader<File>> {
    CaptureReader::open(path).map_err(|error| match error {
        PortError::File { .. } => BadInput(format!("cannot read {error}; give a capture file")).into(),
        error => error.into(),
    })
}

/// Whether a capture has wrong content. A file that cannot be written is no bad input.
fn is_bad_capture(cause: &Cause) -> bool {
    matches!(cause.downcast_ref(), Some(PortError::NotACapture { .. } | PortError::Record { .. }))
}

/// Whether a user that was named does not exist.
fn is_bad_user(cause: &Cause) -> bool {
    matches!(cause.downcast_ref(), Some(PrivilegeError::NoUser(_)))
}

/// Whether a result directory cannot be understood. A report that cannot be written is no bad input.
fn is_bad_import(cause: &Cause) -> bool {
    use fullview_netbenches::ImportError::*;
    !matches!(cause.downcast_ref(), None | Some(Write { .. } | Chart(_) | Json(_)))
}

/// Whether an experiment or a results folder cannot be understood, or used for what was asked.
fn is_bad_archive(cause: &Cause) -> bool {
    use fullview_lab::LabError::{Archive, Experiment};
    match (cause.downcast_ref(), cause.downcast_ref()) {
        (Some(Experiment(_)), _) => true,
        (Some(Archive(error)), _) | (_, Some(error)) => is_wrong_folder(error),
        _ => false,
    }
}

/// A folder that cannot be written, or that another process writes to, is no bad input.
fn is_wrong_folder(error: &ArchiveError) -> bool {
    !matches!(error, ArchiveError::Write { .. } | ArchiveError::Locked { .. })
}

/// Whether the reader of standard output has closed it. Other pipes have errors that say which, with the pipe's as their
/// cause.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The exit code of a command that has shown its answer, which a reader that closed standard output does not change.
fn shown(written: anyhow::Result<()>, exit: Exit) -> anyhow::Result<Exit> {
    match written {
        Err(error) if is_broken_pipe(&error) => Ok(exit),
        written => written.map(|()| exit),
    }
}

/// Runs ministat, which parses its arguments itself.
pub fn ministat(args: Vec<OsString>) -> Exit {
    Exit::Code(fullview_lab::ministat::main(args, &mut io::stdin(), &mut io::stdout(), &mut io::stderr()))
}

pub fn completions(shell: clap_complete::Shell) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "fullview", &mut script);
    stdout().write_all(&script)?;
    Ok(Exit::Done)
}

/// Prints the page of the program, or writes those of all commands into a folder.
pub fn man(args: &ManArgs) -> anyhow::Result<Exit> {
    if let Some(folder) = &args.out {
        let made = fs::create_dir_all(folder);
        let written = made.and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
        written.with_context(|| format!("{}: cannot write the pages", folder.display()))?;
        return Ok(Exit::Done);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    stdout().write_all(&page)?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_reader_changes_no_exit_code_and_another_pipe_is_an_error() {
        let closed = || anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(shown(Err(closed()), Exit::Worse).ok(), Some(Exit::Worse));
        let of_peer = io::Error::other(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(shown(Err(of_peer.into()), Exit::Done).is_err());
        let other = Err::<(), _>(io::Error::other("full")).context("the disk");
        assert!(shown(other, Exit::Done).is_err());
    }
}
