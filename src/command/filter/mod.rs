//! `fullview filter`: rule sets of packet filters.

mod check;
mod entries;
mod explain;
mod kill;
mod read;
mod table;
pub mod warning;

use super::Exit;
use crate::args::FilterCommand;

pub fn run(command: &FilterCommand) -> anyhow::Result<Exit> {
    match command {
        FilterCommand::Check(args) => check::run(args),
        FilterCommand::Explain(args) => explain::run(args),
        FilterCommand::Table(args) => table::run(args),
        FilterCommand::Kill(args) => kill::run(args),
    }
}
