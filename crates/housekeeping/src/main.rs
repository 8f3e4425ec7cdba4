//! Checks of the source tree that compilers do not make. `./ci.sh` runs them.

mod circles;
mod code;
mod imports;
mod order;
mod resolve;
mod rules;
mod tree;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::circles::{Circle, Level, name};
use crate::rules::Rules;
use crate::tree::Tree;
use crate::workspace::Package;

#[derive(Parser)]
#[command(about = "Checks of the source tree that compilers do not make")]
struct Args {
    /// The folder of the workspace's Cargo.toml
    #[arg(long, global = true, default_value = ".")]
    root: PathBuf,
    /// The file of rules, relative to the root
    #[arg(long, global = true, default_value = "crates/housekeeping/rules.toml")]
    rules: PathBuf,
    #[command(subcommand)]
    check: Check,
}

#[derive(Subcommand)]
enum Check {
    /// Fail on circles of imports between modules, and on dependencies that point upwards
    Imports {
        /// Print every import inside a circle instead of the shortest way around
        #[arg(long)]
        all: bool,
        /// Only this package, by the end of its name
        #[arg(long)]
        package: Option<String>,
    },
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("housekeeping: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<bool> {
    let rules = Rules::read(&args.root.join(&args.rules))?;
    let packages = workspace::packages(&args.root)?;
    match &args.check {
        Check::Imports { all, package } => {
            let wanted = |found: &&Package| package.as_deref().is_none_or(|end| found.name.ends_with(end));
            let mut good = true;
            for package in packages.iter().filter(wanted) {
                for tree in package.trees(&args.root)? {
                    good &= circles(&package.name, &tree, *all);
                }
            }
            let others = [order::upward(&packages, &rules), order::strangers(&args.root)?].concat();
            others.iter().for_each(|line| println!("{line}"));
            Ok(good && others.is_empty())
        }
    }
}

/// Prints the circles of one tree; whether there are none.
fn circles(package: &str, tree: &Tree, all: bool) -> bool {
    let imports = imports::of(tree);
    let (mut siblings, mut parents) = (0, 0);
    for level in circles::levels(tree, &imports) {
        for circle in level.among_siblings() {
            print(package, tree, &level, &circle, "siblings", all);
            siblings += 1;
        }
        if let Some(circle) = level.with_parent() {
            print(package, tree, &level, &circle, "with their parent", all);
            parents += 1;
        }
    }
    println!(
        "{package}: {} modules, {siblings} circles among siblings, {parents} with a parent",
        tree.modules.len()
    );
    siblings + parents == 0
}

fn print(package: &str, tree: &Tree, level: &Level, circle: &Circle, kind: &str, all: bool) {
    let members: Vec<String> = circle.members.iter().map(|&member| name(tree, member)).collect();
    let below = name(tree, level.module);
    println!(
        "{package}, below {below}, {kind}: {} modules in a circle: {}",
        members.len(),
        members.join(", ")
    );
    let lines = if all { level.inside(tree, circle) } else { level.describe(tree, circle) };
    lines.iter().for_each(|line| println!("    {line}"));
}
