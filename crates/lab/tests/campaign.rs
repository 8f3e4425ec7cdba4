//! Whole campaigns: order, repeats, interruption, resumption, and folders that cannot be used.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops where it cannot go on"
)]

mod mock;

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fullview_lab::journal::Records;
use fullview_lab::{Archive, ArchiveError, LabError, Opening, Outcome, plan, run};
use mock::bench::{MockBench, ProgressLog};
use mock::experiment::{EXPERIMENT, MockSettings, parse};

type Measured = Result<(Outcome, Records, ProgressLog), LabError>;

fn campaign(text: &str, folder: &Path, opening: Opening, mock: &mut MockBench) -> Measured {
    let experiment = parse(text);
    let mut archive = Archive::open(folder, &experiment, opening)?;
    let mut progress = ProgressLog::default();
    let outcome = run(&experiment, &mut archive, mock, &mut progress, &AtomicBool::new(false))?;
    Ok((outcome, archive.records().clone(), progress))
}

fn refused(text: &str, folder: &Path, opening: Opening) -> LabError {
    campaign(text, folder, opening, &mut MockBench::default()).expect_err("the campaign should be refused")
}

#[test]
fn the_plan_is_run_in_order_and_every_run_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (mut mock, path) = (MockBench::default(), folder.path().join("results/x"));
    let (outcome, records, progress) = campaign(EXPERIMENT, &path, Opening::New, &mut mock).unwrap();
    assert_eq!(outcome, Outcome::Complete);
    assert_eq!((progress.total, progress.finished, mock.verified), (16, 16, 16));
    assert_eq!(progress.estimated.as_secs_f64(), 16.0 * 2.7);
    let experiment = parse(EXPERIMENT);
    for (run, planned) in records.runs.iter().zip(plan(2, 2, 4, 1)) {
        assert_eq!((run.block, run.position, run.seed), (planned.block, planned.position, planned.seed));
        assert_eq!(run.variant, experiment.variants[planned.cell.variant].name);
        assert_eq!(run.family, experiment.families[planned.cell.family].name);
        assert!(run.is_valid());
    }
    assert_eq!(fullview_lab::journal::read(&path.join("runs.jsonl")).unwrap().runs, records.runs);
    assert_eq!(fs::read_to_string(path.join("campaign.toml")).unwrap(), EXPERIMENT);
}

#[test]
fn invalid_runs_are_kept_and_repeated_at_the_end_of_their_block() {
    let folder = tempfile::tempdir().unwrap();
    let text = EXPERIMENT.replace("subject = {", "subject = { invalid_runs = 2,");
    let (_, records, progress) =
        campaign(&text, folder.path(), Opening::New, &mut MockBench::default()).unwrap();
    assert_eq!(records.runs.len(), 18);
    assert_eq!(progress.attempts[..7], [0, 0, 0, 0, 1, 1, 0]);
    assert_eq!(records.runs[0].validity.to_string(), "generator limited");
    let (first, repeat) = (&records.runs[0], &records.runs[4]);
    assert_eq!((&first.variant, &first.family, first.block), (&repeat.variant, &repeat.family, repeat.block));
    assert!(repeat.is_valid());
}

#[test]
fn the_number_of_repeats_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let text = EXPERIMENT.replace("subject = {", "subject = { invalid_runs = 1000,")
        + "[analysis]\nretries = 1\nmax_repeats = 16\n";
    let (outcome, records, _) =
        campaign(&text, folder.path(), Opening::New, &mut MockBench::default()).unwrap();
    assert_eq!((outcome, records.runs.len()), (Outcome::Complete, 32));
}

/// Every planned run is made once, and half as many repeats are made.
#[test]
fn repeats_make_a_campaign_at_most_half_as_long_again() {
    let folder = tempfile::tempdir().unwrap();
    let text = EXPERIMENT.replace("subject = {", "subject = { invalid_runs = 1000,");
    let (outcome, records, _) =
        campaign(&text, folder.path(), Opening::New, &mut MockBench::default()).unwrap();
    assert_eq!((outcome, records.runs.len()), (Outcome::Complete, 16 + 8));
    assert_eq!(records.runs.iter().filter(|run| run.attempt == 0).count(), 16);
    let (_, again, _) = campaign(&text, folder.path(), Opening::Resume, &mut MockBench::default()).unwrap();
    assert_eq!(again.runs.len(), 24);
    let report = fullview_lab::report(folder.path()).unwrap();
    let words = "16 of the 16 planned runs have no valid result, in 4 cells: see the validity table; the campaign made \
                 all 8 repeats of invalid runs that it is allowed";
    assert!(report.warnings().iter().any(|line| line.starts_with(words)), "{:?}", report.warnings());
    assert!(report.readme().contains("at most 8 repeats in the whole campaign; this campaign made 8."));
}

#[test]
fn an_interrupted_campaign_continues_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let mut stopping = MockBench { stop_in: Some(6), ..MockBench::default() };
    let (outcome, records, _) = campaign(EXPERIMENT, folder.path(), Opening::New, &mut stopping).unwrap();
    assert_eq!((outcome, records.runs.len()), (Outcome::Interrupted, 6));
    assert_eq!(records.runs[5].validity.to_string(), "interrupted");

    let (outcome, records, progress) =
        campaign(EXPERIMENT, folder.path(), Opening::Resume, &mut MockBench::default()).unwrap();
    assert_eq!((outcome, progress.total, records.runs.len()), (Outcome::Complete, 11, 17));
    assert_eq!(records.runs.iter().filter(|run| run.is_valid()).count(), 16);
    // The interrupted run is made again and does not count as a repeat.
    assert_eq!((&records.runs[6].variant, records.runs[6].attempt), (&records.runs[5].variant, 1));
}

#[test]
fn an_incomplete_last_line_loses_one_run() {
    let folder = tempfile::tempdir().unwrap();
    campaign(EXPERIMENT, folder.path(), Opening::New, &mut MockBench::default()).unwrap();
    let runs = folder.path().join("runs.jsonl");
    let whole = fs::read(&runs).unwrap();
    fs::write(&runs, &whole[..whole.len() - 40]).unwrap();

    assert_eq!(fullview_lab::journal::read(&runs).unwrap().torn_line, Some(16));
    let (_, records, progress) =
        campaign(EXPERIMENT, folder.path(), Opening::Resume, &mut MockBench::default()).unwrap();
    assert_eq!((progress.total, records.runs.len()), (1, 16));
    assert_eq!(fullview_lab::journal::read(&runs).unwrap().runs, records.runs);
}

#[test]
fn a_last_line_without_its_line_break_is_a_run() {
    let folder = tempfile::tempdir().unwrap();
    campaign(EXPERIMENT, folder.path(), Opening::New, &mut MockBench::default()).unwrap();
    let runs = folder.path().join("runs.jsonl");
    let whole = fs::read(&runs).unwrap();
    fs::write(&runs, &whole[..whole.len() - 1]).unwrap();

    let (_, _, progress) =
        campaign(EXPERIMENT, folder.path(), Opening::Resume, &mut MockBench::default()).unwrap();
    assert_eq!(progress.total, 0);
    assert_eq!(fs::read(&runs).unwrap(), whole);
}

#[test]
fn the_error_of_a_changed_line_contains_its_number() {
    let folder = tempfile::tempdir().unwrap();
    campaign(EXPERIMENT, folder.path(), Opening::New, &mut MockBench::default()).unwrap();
    let runs = folder.path().join("runs.jsonl");
    let text = fs::read_to_string(&runs).unwrap();
    fs::write(&runs, text.replacen("\"block\":0,\"position\":2", "\"block\":0,\"place\":2", 1)).unwrap();
    let error = refused(EXPERIMENT, folder.path(), Opening::Resume);
    assert!(error.to_string().contains("runs.jsonl:3: not a run record"), "{error}");
}

#[test]
fn a_campaign_is_only_replaced_by_force() {
    let folder = tempfile::tempdir().unwrap();
    campaign(EXPERIMENT, folder.path(), Opening::New, &mut MockBench::default()).unwrap();
    let error = refused(EXPERIMENT, folder.path(), Opening::New);
    assert!(matches!(error, LabError::Archive(ArchiveError::Exists { .. })), "{error}");

    fs::write(folder.path().join("graph.png"), "old").unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let (_, records, _) =
        campaign(EXPERIMENT, folder.path(), Opening::Force, &mut MockBench::default()).unwrap();
    assert_eq!(records.runs.len(), 16);
    assert!(!folder.path().join("graph.png").exists());
    assert!(folder.path().join("notes.txt").exists());
}

#[test]
fn only_the_same_experiment_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let error = refused(EXPERIMENT, folder.path(), Opening::Resume);
    assert!(matches!(error, LabError::Archive(ArchiveError::NothingToResume { .. })), "{error}");

    campaign(EXPERIMENT, folder.path(), Opening::New, &mut MockBench::default()).unwrap();
    let other = EXPERIMENT.replace("1050000.0", "1060000.0");
    let error = refused(&other, folder.path(), Opening::Resume).to_string();
    assert!(error.contains("variants[1].set.rate: 1050000.0 → 1060000.0"), "{error}");
}

#[test]
fn a_resumed_campaign_may_have_more_runs_but_not_fewer() {
    let folder = tempfile::tempdir().unwrap();
    let (_, first, _) = campaign(EXPERIMENT, folder.path(), Opening::New, &mut MockBench::default()).unwrap();
    let longer = EXPERIMENT.replace("runs = 4", "runs = 6");
    assert_ne!(longer, EXPERIMENT);
    let (_, all, _) = campaign(&longer, folder.path(), Opening::Resume, &mut MockBench::default()).unwrap();
    assert_eq!((first.runs.len(), all.runs.len()), (16, 24));
    assert_eq!(first.runs[..], all.runs[..16]);
    let error = refused(EXPERIMENT, folder.path(), Opening::Resume).to_string();
    assert!(error.contains("runs: 6 → 4"), "{error}");
}

#[test]
fn only_the_same_machine_can_resume() {
    let folder = tempfile::tempdir().unwrap();
    campaign(EXPERIMENT, folder.path(), Opening::New, &mut MockBench::default()).unwrap();
    let host = folder.path().join("host.json");
    let text = fs::read_to_string(&host).unwrap();
    fs::write(&host, text.replace("a mock", "another mock")).unwrap();
    let error = refused(EXPERIMENT, folder.path(), Opening::Resume).to_string();
    assert!(error.contains("conditions: another mock → a mock"), "{error}");
}

#[test]
fn changes_after_reading_are_listed_at_the_top_of_the_archived_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let mut experiment = parse(EXPERIMENT);
    experiment.runs = 3;
    experiment.variants[1].set = MockSettings { rate: None, wrong: Some(false), invalid_runs: None };
    drop(Archive::open(folder.path(), &experiment, Opening::New).unwrap());
    let text = fs::read_to_string(folder.path().join("campaign.toml")).unwrap();
    let heading: Vec<&str> = text.lines().take(4).collect();
    assert_eq!(
        heading,
        [
            "# experiment.toml with these changes:",
            "#   runs: 4 → 3",
            "#   variants[1].set.rate: 1050000.0 → nothing",
            "#   variants[1].set.wrong: nothing → false",
        ]
    );
    let (_, records, _) = campaign(&text, folder.path(), Opening::Resume, &mut MockBench::default()).unwrap();
    assert_eq!(records.runs.len(), 12);
}

#[test]
fn two_writers_do_not_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = parse(EXPERIMENT);
    let first = Archive::open(folder.path(), &experiment, Opening::New).unwrap();
    let error = Archive::open(folder.path(), &experiment, Opening::Resume).unwrap_err();
    assert!(matches!(error, LabError::Archive(ArchiveError::Locked { .. })), "{error}");
    drop(first);
    assert!(Archive::open(folder.path(), &experiment, Opening::Resume).is_ok());
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_the_first_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let mut mock = MockBench::default();
    let error = campaign(EXPERIMENT, &file.join("x"), Opening::New, &mut mock).unwrap_err().to_string();
    assert!(
        error.contains("file/x: cannot write") && error.contains("a part of the path is a file"),
        "{error}"
    );
    assert_eq!(mock.runs, 0);
}

#[test]
fn a_wrong_subject_is_not_measured() {
    let folder = tempfile::tempdir().unwrap();
    let text = EXPERIMENT.replace("subject = {", "subject = { wrong = true,");
    let mut mock = MockBench::default();
    let error = campaign(&text, folder.path(), Opening::New, &mut mock).unwrap_err().to_string();
    assert!(error.contains("verifying failed: key 3 gave next hop 4, and 5 is right"), "{error}");
    assert_eq!(mock.runs, 0);
}

#[test]
fn a_figure_that_is_not_finite_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = EXPERIMENT.replace("rate = 1000000.0", "rate = inf");
    let error = campaign(&text, folder.path(), Opening::New, &mut MockBench::default()).unwrap_err();
    assert!(matches!(error, LabError::Figure { .. }), "{error}");
}
