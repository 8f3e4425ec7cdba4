//! The command line of `fullview testbed`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
#[command(after_help = "An inventory names hosts, wires and devices: docs/reference/testbed.md.

Exit codes:
  0    done; of check: the test bed is as the inventory says
  1    it could not be done, or check found a problem: the output says which
  2    wrong arguments or a wrong inventory: the message says what to change

Examples:
  fullview testbed draw experiments/testbed/three-nodes.toml
  fullview testbed draw lab.toml --svg lab.svg
  fullview testbed check lab.toml
  fullview rates --testbed lab.toml
  fullview testbed clean --dry-run
  fullview testbed clean lab.toml")]
pub enum TestbedCommand {
    /// Draw the wiring of an inventory
    Draw(DrawTestbedArgs),
    /// Connect to all hosts of an inventory, and look whether hosts, interfaces and wires are as it says
    Check(CheckTestbedArgs),
    /// Remove namespaces, processes and folders that killed measurements left on this machine, and put its settings back; or
    /// put back settings and files of the hosts of an inventory
    Clean(CleanTestbedArgs),
}

#[derive(Debug, Args)]
pub struct DrawTestbedArgs {
    /// The inventory
    #[arg(value_name = "FILE")]
    pub inventory: PathBuf,
    /// Write a picture to this file, instead of characters to standard output
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CheckTestbedArgs {
    /// The inventory
    #[arg(value_name = "FILE")]
    pub inventory: PathBuf,
    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CleanTestbedArgs {
    /// Put back what is left on the hosts of this inventory, instead of on this machine
    #[arg(value_name = "FILE")]
    pub inventory: Option<PathBuf>,
    /// Only say what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}
