//! The program: it joins the table, the plane and the lab, and decides the exit code.

mod args;
mod calibration;
mod command;
mod preferences;
mod progress;
mod router;
mod settings;
mod subject;
mod workload;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use command::Exit;

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(exit) => exit.into(),
        Err(error) if command::is_broken_pipe(&error) => Exit::Done.into(),
        Err(error) => {
            command::say(&format!("fullview: {}", command::message(&error)));
            command::exit_of(&error).into()
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        Command::Bench(args) => command::bench::run(&args),
        Command::Report(args) => command::report::run(&args),
        Command::Table(args) => command::table::run(&args),
        Command::Forward(args) => command::forward::run(&args),
        Command::Generate(args) => command::generate::run(&args),
        Command::Ministat(args) => Ok(command::ministat(args.args)),
        Command::Completions { shell } => command::completions(shell),
        Command::Man => command::man(),
    }
}
