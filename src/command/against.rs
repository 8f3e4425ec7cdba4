//! `fullview bench --against`: compares this build with another one.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use fullview_bench::served::{Program, ServedBench, ServedBuild, against, refuse_peers};
use fullview_bench::settings::Settings;
use fullview_lab::stats::Verdict;
use fullview_lab::{Archive, Bench, Experiment};
use fullview_router::error::BadInput;
use fullview_router::log;

use super::other_build::{Found, OtherBuild};
use super::{Exit, campaign, report, shown};
use crate::args::BenchArgs;
use crate::command::output::stdout;

pub fn run(args: &BenchArgs, mut experiment: Experiment<Settings>, other: &str) -> anyhow::Result<Exit> {
    refuse_peers(&experiment)?;
    let found = OtherBuild::find(other)?;
    let default =
        || campaign::default_folder(&args.experiment.experiment, &format!("-against-{}", found.slug));
    let folder = args.out.clone().unwrap_or_else(default);
    Archive::check(&folder, campaign::opening(args))?;
    let mut conditions = conditions(&mut experiment, args.resume.then_some(&*folder))?;
    let stop = campaign::stop_on_signal()?;
    let Some(before) = built(&found, args, &stop)? else { return Ok(Exit::Interrupted) };
    let this = std::env::current_exe().context("the path of this program is not known")?;
    let [before_program, after] = [program(before.path(), &experiment)?, program(&this, &experiment)?];
    let differences = differences(before_program.build(), after.build())?;
    let label = format!("{} ({})", found.label, before.path().display());
    conditions.extend(builds(&label, [before_program.build(), after.build()]));
    conditions.extend(differences);
    let experiment = against(&experiment, &found.label);
    experiment.check()?;
    let mut served = ServedBench::new(before_program, after, experiment.seed, conditions);
    let outcome = campaign::measure(&experiment, &folder, campaign::opening(args), &mut served, &stop)?;
    drop(before);
    let exit = report::write(&folder, args.json, args.gate)?;
    let concluded = conclude(&folder, &found.label, args.json);
    Ok(campaign::end(args, outcome, shown(concluded, exit)?, &folder))
}

/// The conditions of the bed that every process makes. The bench is made in a thread of its own, because it may pin its
/// thread to a core, and processes started by a pinned thread would have that core only.
fn conditions(experiment: &mut Experiment<Settings>, begun: Option<&Path>) -> anyhow::Result<Vec<String>> {
    let made = std::thread::scope(|threads| {
        threads.spawn(|| campaign::bench(experiment, begun).map(|mut bench| bench.conditions())).join()
    });
    made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The other build; `None` if the user stopped it.
fn built(found: &Found, args: &BenchArgs, stop: &AtomicBool) -> anyhow::Result<Option<OtherBuild>> {
    match OtherBuild::make(found, args.keep) {
        Err(_) if stop.load(Ordering::Relaxed) => Ok(None),
        made => made.map(Some),
    }
}

fn program(path: &Path, experiment: &Experiment<Settings>) -> anyhow::Result<Program> {
    Program::at(path).and_then(|program| program.serving(experiment)).map_err(|error| {
        match error.is_bad_input() {
            true => BadInput(error.to_string()).into(),
            false => error.into(),
        }
    })
}

fn builds(label: &str, builds: [&ServedBuild; 2]) -> [String; 2] {
    let [before, after] = builds.map(described);
    [format!("{label}: {before}"), format!("this build: {after}")]
}

fn described(build: &ServedBuild) -> String {
    let known = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "unknown".into());
    let kind = if build.debug { ", debug" } else { "" };
    let program = build.program.as_ref().map_or(String::new(), |program| format!(", program {program}"));
    let (version, commit, rustc) = (&build.version, known(&build.commit), known(&build.rustc));
    format!("fullview {version}, commit {commit}, {rustc}{kind}{program}")
}

/// In what the builds differ besides their code. A debug build and a release build are not compared.
fn differences(before: &ServedBuild, after: &ServedBuild) -> anyhow::Result<Vec<String>> {
    if before.debug != after.debug {
        let kind = |build: &ServedBuild| if build.debug { "debug" } else { "release" };
        let (before, after) = (kind(before), kind(after));
        let message = format!(
            "the other program is a {before} build and this one a {after} build: compare two of one kind"
        );
        return Err(BadInput(message).into());
    }
    let rustc = (before.rustc != after.rustc)
        .then(|| "the builds differ in the compiler too: the difference is not of the code alone".to_owned());
    let features = (before.features != after.features)
        .then(|| format!("the builds have other features, {:?} and {:?}", before.features, after.features));
    let known = before.instructions.as_ref().zip(after.instructions.as_ref());
    let instructions = known.filter(|(before, after)| before != after).map(|(before, after)| {
        format!("the builds may use other instructions, {before:?} and {after:?}: their RUSTFLAGS differ")
    });
    let debug = after.debug.then(|| "both are debug builds: their rates mean nothing".to_owned());
    Ok(rustc.into_iter().chain(features).chain(instructions).chain(debug).collect())
}

/// Says in one line what the other lines say together, below them, and before it what would mislead.
fn conclude(folder: &Path, label: &str, is_json: bool) -> anyhow::Result<()> {
    for bed in fullview_lab::beds::differences(folder)? {
        log::line(&format!("warning: {bed}"));
    }
    if is_json {
        return Ok(());
    }
    let report = fullview_lab::report(folder)?;
    let count = |verdict| report.verdicts().iter().filter(|found| **found == verdict).count();
    let parts = [
        ("faster in", Some(Verdict::Better)),
        ("slower in", Some(Verdict::Worse)),
        ("the same within the margin in", Some(Verdict::Equivalent)),
        ("undecided in", Some(Verdict::Undecided)),
        ("not judged in", None),
    ];
    let counted = parts.map(|(what, verdict)| (what, count(verdict)));
    let parts: Vec<String> = counted
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{what} {count}"))
        .collect();
    let all = report.verdicts().len();
    Ok(writeln!(stdout(), "this build against {label}: {} of {all} comparisons", parts.join(", "))?)
}

#[cfg(test)]
mod tests {
    use fullview_bench::served::ServedBuild;

    use super::differences;

    fn build(instructions: Option<&[&str]>) -> ServedBuild {
        ServedBuild {
            version: "1".into(),
            rustc: None,
            commit: None,
            program: None,
            debug: false,
            features: Vec::new(),
            instructions: instructions.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        }
    }

    #[test]
    fn builds_for_other_processors_have_a_condition_that_says_so() {
        let [plain, native, old] = [Some(&[][..]), Some(&["avx2"][..]), None].map(build);
        let found = differences(&plain, &native).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("[] and [\"avx2\"]: their RUSTFLAGS differ"), "{found:?}");
        assert!(differences(&native, &native).unwrap().is_empty());
        assert!(differences(&old, &native).unwrap().is_empty(), "an older build does not say it");
    }
}
