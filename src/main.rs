//! The program: it parses the command line, runs a command of the libraries, and sets the exit code.

mod args;
mod command;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use command::Exit;
use fullview_router::error::message;
use fullview_router::log;

fn main() -> ExitCode {
    let exit = match run(Cli::parse()) {
        Ok(exit) => exit,
        Err(error) if command::is_broken_pipe(&error) => Exit::Done,
        Err(error) => {
            log::warning(&format!("fullview: {}", message(error.as_ref())));
            command::exit_of(&error)
        }
    };
    log::finish();
    exit.into()
}

fn run(cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        Command::Bench(args) => command::bench::run(&args),
        Command::Report(args) => command::report::run(&args),
        Command::Import(args) => command::import::run(&args),
        Command::Export(args) => command::export::run(&args),
        Command::Compare(args) => command::compare::run(&args),
        Command::Aa(args) => command::aa::run(&args),
        Command::Plan(args) => command::plan::run(&args),
        Command::Profile(args) => command::profile::run(&args),
        #[cfg(all(feature = "bpf", target_os = "linux"))]
        Command::Rates(args) => command::rates::run(&args),
        #[cfg(all(feature = "bpf", target_os = "linux"))]
        Command::Testbed(asked) => command::testbed::run(&asked),
        #[cfg(all(feature = "bpf", target_os = "linux"))]
        Command::TestbedAgent => command::testbed::agent(),
        Command::ServeSlices => command::serve::run(),
        Command::Table(args) => command::table::run(&args),
        Command::Filter(args) => command::filter::run(&args),
        Command::Forward(args) => command::forward::run(&args),
        Command::Show(args) => command::show::run(&args),
        Command::Trace(args) => command::trace::run(&args),
        Command::Reload(args) => command::reload::reload(&args),
        Command::CheckConfig(args) => command::reload::check(&args),
        Command::CaptureDrops(args) => command::capture_drops::run(&args),
        Command::Generate(args) => command::generate::run(&args),
        Command::Ministat(args) => Ok(command::ministat(args.args)),
        Command::Completions { shell } => command::completions(shell),
        Command::Man(args) => command::man(&args),
    }
}
