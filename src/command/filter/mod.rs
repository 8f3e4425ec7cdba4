//! `fullview filter`: rule sets of packet filters.

mod check;
mod explain;
mod read;

use super::Exit;
use crate::args::FilterCommand;

pub fn run(command: &FilterCommand) -> anyhow::Result<Exit> {
    match command {
        FilterCommand::Check(args) => check::run(args),
        FilterCommand::Explain(args) => explain::run(args),
    }
}
