//! Checks of the source tree that compilers do not make. `./ci.sh` runs them.

mod circles;
mod code;
mod imports;
mod lengths;
mod order;
mod resolve;
mod rules;
mod tree;
mod types;
mod workspace;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::circles::{Circle, Level, name};
use crate::rules::{Exceptions, Rules};
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
    /// Fail on type names that a crate uses twice, and on types whose `impl` blocks stand in more than three files
    Types,
    /// Fail when functions become too long
    Functions,
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
    let sources = sources(&args.root)?;
    match &args.check {
        Check::Imports { all, package } => imports_of(args, &rules, &sources, *all, package.as_deref()),
        Check::Types => Ok(types_of(&rules, &sources)),
        Check::Functions => Ok(functions_of(&rules, &sources)),
    }
}

/// A package and the module trees of its library and program.
struct Source {
    package: Package,
    trees: Vec<Tree>,
}

fn sources(root: &Path) -> Result<Vec<Source>> {
    let packages = workspace::packages(root)?;
    packages.into_iter().map(|package| Ok(Source { trees: package.trees(root)?, package })).collect()
}

fn imports_of(args: &Args, rules: &Rules, sources: &[Source], all: bool, only: Option<&str>) -> Result<bool> {
    let mut good = true;
    for Source { package, trees } in sources {
        if only.is_none_or(|end| package.name.ends_with(end)) {
            good = trees.iter().fold(good, |good, tree| circles(&package.name, tree, all) & good);
        }
    }
    let packages: Vec<&Package> = sources.iter().map(|source| &source.package).collect();
    let others = [order::upward(&packages, rules), order::strangers(&args.root)?].concat();
    Ok(none(&others) && good)
}

fn types_of(rules: &Rules, sources: &[Source]) -> bool {
    let mut exceptions = Exceptions::new(&rules.repeated_types);
    let mut found = Vec::new();
    for Source { package, trees } in sources {
        found.extend(types::repeated(&package.name, trees, &mut exceptions));
        found.extend(trees.iter().flat_map(|tree| types::scattered(&package.name, tree)));
    }
    found.extend(exceptions.unused());
    none(&found)
}

fn functions_of(rules: &Rules, sources: &[Source]) -> bool {
    let mut exceptions = Exceptions::new(&rules.long_functions);
    let (mut found, mut all) = (Vec::new(), Vec::new());
    for Source { package, trees } in sources {
        let functions: Vec<_> = trees.iter().flat_map(lengths::of).collect();
        found.extend(lengths::too_long(&package.name, &functions, &mut exceptions));
        all.extend(functions);
    }
    found.extend(exceptions.unused());
    let figures = lengths::Figures::of(&all);
    println!("{figures}");
    none(&found) && figures.is_good()
}

/// Prints what was found; whether it was nothing.
fn none(found: &[String]) -> bool {
    found.iter().for_each(|line| println!("{line}"));
    found.is_empty()
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
