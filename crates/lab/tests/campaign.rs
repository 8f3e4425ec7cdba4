//! Campaigns from outside: order, repeats, interruption, resumption, and folders that cannot be used.

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

use fullview_lab::sample::Records;
use fullview_lab::{Archive, ArchiveError, LabError, Opening, Outcome, plan, run};
use mock::bench::{Heard, Mock};
use mock::question::{Knobs, QUESTION, experiment};

type Ran = Result<(Outcome, Records, Heard), LabError>;

fn campaign(text: &str, folder: &Path, opening: Opening, mock: &mut Mock) -> Ran {
    let experiment = experiment(text);
    let mut archive = Archive::open(folder, &experiment, opening)?;
    let mut heard = Heard::default();
    let outcome = run(&experiment, &mut archive, mock, &mut heard, &AtomicBool::new(false))?;
    Ok((outcome, archive.records().clone(), heard))
}

fn refused(text: &str, folder: &Path, opening: Opening) -> LabError {
    campaign(text, folder, opening, &mut Mock::default()).expect_err("the campaign should be refused")
}

#[test]
fn runs_the_plan_in_its_order_and_keeps_every_run() {
    let folder = tempfile::tempdir().unwrap();
    let (mut mock, path) = (Mock::default(), folder.path().join("results/x"));
    let (outcome, records, heard) = campaign(QUESTION, &path, Opening::New, &mut mock).unwrap();
    assert_eq!(outcome, Outcome::Complete);
    assert_eq!((heard.total, heard.finished, mock.verified), (16, 16, 16));
    assert_eq!(heard.estimated.as_secs_f64(), 16.0 * 2.7);
    let asked = experiment(QUESTION);
    for (run, planned) in records.runs.iter().zip(plan(2, 2, 4, 1)) {
        assert_eq!((run.block, run.position, run.seed), (planned.block, planned.position, planned.seed));
        assert_eq!(run.variant, asked.variants[planned.cell.variant].name);
        assert_eq!(run.family, asked.families[planned.cell.family].name);
        assert!(run.is_valid());
    }
    assert_eq!(fullview_lab::sample::read(&path.join("runs.jsonl")).unwrap().runs, records.runs);
    assert_eq!(fs::read_to_string(path.join("campaign.toml")).unwrap(), QUESTION);
}

#[test]
fn invalid_runs_are_kept_and_repeated_at_the_end_of_their_block() {
    let folder = tempfile::tempdir().unwrap();
    let text = QUESTION.replace("subject = {", "subject = { invalid_runs = 2,");
    let (_, records, heard) = campaign(&text, folder.path(), Opening::New, &mut Mock::default()).unwrap();
    assert_eq!(records.runs.len(), 18);
    assert_eq!(heard.attempts[..7], [0, 0, 0, 0, 1, 1, 0]);
    assert_eq!(records.runs[0].validity.to_string(), "generator limited");
    let (first, repeat) = (&records.runs[0], &records.runs[4]);
    assert_eq!((&first.variant, &first.family, first.block), (&repeat.variant, &repeat.family, repeat.block));
    assert!(repeat.is_valid());
}

#[test]
fn repeats_have_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let text = QUESTION.replace("subject = {", "subject = { invalid_runs = 1000,")
        + "[analysis]\nretries = 1\nmax_repeats = 16\n";
    let (outcome, records, _) = campaign(&text, folder.path(), Opening::New, &mut Mock::default()).unwrap();
    assert_eq!((outcome, records.runs.len()), (Outcome::Complete, 32));
}

/// Every run that was planned is made once, and half as many again.
#[test]
fn a_noisy_machine_makes_a_campaign_half_as_long_again_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let text = QUESTION.replace("subject = {", "subject = { invalid_runs = 1000,");
    let (outcome, records, _) = campaign(&text, folder.path(), Opening::New, &mut Mock::default()).unwrap();
    assert_eq!((outcome, records.runs.len()), (Outcome::Complete, 16 + 8));
    assert_eq!(records.runs.iter().filter(|run| run.attempt == 0).count(), 16);
    let (_, again, _) = campaign(&text, folder.path(), Opening::Resume, &mut Mock::default()).unwrap();
    assert_eq!(again.runs.len(), 24);
    let report = fullview_lab::report(folder.path()).unwrap();
    let words = "16 of the 16 planned runs have no valid result, in 4 cells: see the validity table; the campaign made \
                 all 8 repeats of invalid runs it may";
    assert!(report.warnings().iter().any(|line| line.starts_with(words)), "{:?}", report.warnings());
    assert!(report.readme().contains("repeats at most 8: 8 were."));
}

#[test]
fn an_interrupted_campaign_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let mut stopping = Mock { stop_in: Some(6), ..Mock::default() };
    let (outcome, records, _) = campaign(QUESTION, folder.path(), Opening::New, &mut stopping).unwrap();
    assert_eq!((outcome, records.runs.len()), (Outcome::Interrupted, 6));
    assert_eq!(records.runs[5].validity.to_string(), "interrupted");

    let (outcome, records, heard) =
        campaign(QUESTION, folder.path(), Opening::Resume, &mut Mock::default()).unwrap();
    assert_eq!((outcome, heard.total, records.runs.len()), (Outcome::Complete, 11, 17));
    assert_eq!(records.runs.iter().filter(|run| run.is_valid()).count(), 16);
    // The interrupted run itself comes again, and cost no repeat.
    assert_eq!((&records.runs[6].variant, records.runs[6].attempt), (&records.runs[5].variant, 1));
}

#[test]
fn a_torn_last_line_costs_one_run() {
    let folder = tempfile::tempdir().unwrap();
    campaign(QUESTION, folder.path(), Opening::New, &mut Mock::default()).unwrap();
    let runs = folder.path().join("runs.jsonl");
    let whole = fs::read(&runs).unwrap();
    fs::write(&runs, &whole[..whole.len() - 40]).unwrap();

    assert_eq!(fullview_lab::sample::read(&runs).unwrap().torn_line, Some(16));
    let (_, records, heard) =
        campaign(QUESTION, folder.path(), Opening::Resume, &mut Mock::default()).unwrap();
    assert_eq!((heard.total, records.runs.len()), (1, 16));
    assert_eq!(fullview_lab::sample::read(&runs).unwrap().runs, records.runs);
}

#[test]
fn a_last_line_that_lacks_only_its_break_is_a_run() {
    let folder = tempfile::tempdir().unwrap();
    campaign(QUESTION, folder.path(), Opening::New, &mut Mock::default()).unwrap();
    let runs = folder.path().join("runs.jsonl");
    let whole = fs::read(&runs).unwrap();
    fs::write(&runs, &whole[..whole.len() - 1]).unwrap();

    let (_, _, heard) = campaign(QUESTION, folder.path(), Opening::Resume, &mut Mock::default()).unwrap();
    assert_eq!(heard.total, 0);
    assert_eq!(fs::read(&runs).unwrap(), whole);
}

#[test]
fn a_line_changed_by_hand_is_an_error_with_its_number() {
    let folder = tempfile::tempdir().unwrap();
    campaign(QUESTION, folder.path(), Opening::New, &mut Mock::default()).unwrap();
    let runs = folder.path().join("runs.jsonl");
    let text = fs::read_to_string(&runs).unwrap();
    fs::write(&runs, text.replacen("\"block\":0,\"position\":2", "\"block\":0,\"place\":2", 1)).unwrap();
    let error = refused(QUESTION, folder.path(), Opening::Resume);
    assert!(error.to_string().contains("runs.jsonl:3: not a run record"), "{error}");
}

#[test]
fn a_campaign_is_never_overwritten_unasked() {
    let folder = tempfile::tempdir().unwrap();
    campaign(QUESTION, folder.path(), Opening::New, &mut Mock::default()).unwrap();
    let error = refused(QUESTION, folder.path(), Opening::New);
    assert!(matches!(error, LabError::Archive(ArchiveError::Exists { .. })), "{error}");

    fs::write(folder.path().join("graph.png"), "old").unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let (_, records, _) = campaign(QUESTION, folder.path(), Opening::Force, &mut Mock::default()).unwrap();
    assert_eq!(records.runs.len(), 16);
    assert!(!folder.path().join("graph.png").exists());
    assert!(folder.path().join("notes.txt").exists());
}

#[test]
fn only_the_same_question_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let error = refused(QUESTION, folder.path(), Opening::Resume);
    assert!(matches!(error, LabError::Archive(ArchiveError::NothingToResume { .. })), "{error}");

    campaign(QUESTION, folder.path(), Opening::New, &mut Mock::default()).unwrap();
    let other = QUESTION.replace("1050000.0", "1060000.0");
    let error = refused(&other, folder.path(), Opening::Resume).to_string();
    assert!(error.contains("variants[1].set.rate: 1050000.0 → 1060000.0"), "{error}");
}

#[test]
fn a_campaign_may_be_asked_for_more_runs_but_not_for_fewer() {
    let folder = tempfile::tempdir().unwrap();
    let (_, first, _) = campaign(QUESTION, folder.path(), Opening::New, &mut Mock::default()).unwrap();
    let longer = QUESTION.replace("runs = 4", "runs = 6");
    assert_ne!(longer, QUESTION);
    let (_, all, _) = campaign(&longer, folder.path(), Opening::Resume, &mut Mock::default()).unwrap();
    assert_eq!((first.runs.len(), all.runs.len()), (16, 24));
    assert_eq!(first.runs[..], all.runs[..16]);
    let error = refused(QUESTION, folder.path(), Opening::Resume).to_string();
    assert!(error.contains("runs: 6 → 4"), "{error}");
}

#[test]
fn only_the_same_machine_can_resume() {
    let folder = tempfile::tempdir().unwrap();
    campaign(QUESTION, folder.path(), Opening::New, &mut Mock::default()).unwrap();
    let host = folder.path().join("host.json");
    let text = fs::read_to_string(&host).unwrap();
    fs::write(&host, text.replace("a mock", "another mock")).unwrap();
    let error = refused(QUESTION, folder.path(), Opening::Resume).to_string();
    assert!(error.contains("conditions: another mock → a mock"), "{error}");
}

#[test]
fn what_was_changed_after_reading_stands_on_top_of_the_archived_question() {
    let folder = tempfile::tempdir().unwrap();
    let mut asked = experiment(QUESTION);
    asked.runs = 3;
    asked.variants[1].set = Knobs { rate: None, wrong: Some(false), invalid_runs: None };
    drop(Archive::open(folder.path(), &asked, Opening::New).unwrap());
    let text = fs::read_to_string(folder.path().join("campaign.toml")).unwrap();
    let heading: Vec<&str> = text.lines().take(4).collect();
    assert_eq!(
        heading,
        [
            "# question.toml with these changes:",
            "#   runs: 4 → 3",
            "#   variants[1].set.rate: 1050000.0 → nothing",
            "#   variants[1].set.wrong: nothing → false",
        ]
    );
    let (_, records, _) = campaign(&text, folder.path(), Opening::Resume, &mut Mock::default()).unwrap();
    assert_eq!(records.runs.len(), 12);
}

#[test]
fn two_writers_do_not_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let asked = experiment(QUESTION);
    let first = Archive::open(folder.path(), &asked, Opening::New).unwrap();
    let error = Archive::open(folder.path(), &asked, Opening::Resume).unwrap_err();
    assert!(matches!(error, LabError::Archive(ArchiveError::Locked { .. })), "{error}");
    drop(first);
    assert!(Archive::open(folder.path(), &asked, Opening::Resume).is_ok());
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_the_first_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let mut mock = Mock::default();
    let error = campaign(QUESTION, &file.join("x"), Opening::New, &mut mock).unwrap_err().to_string();
    assert!(
        error.contains("file/x: cannot write") && error.contains("a part of the path is a file"),
        "{error}"
    );
    assert_eq!(mock.runs, 0);
}

#[test]
fn a_wrong_subject_is_not_timed() {
    let folder = tempfile::tempdir().unwrap();
    let text = QUESTION.replace("subject = {", "subject = { wrong = true,");
    let mut mock = Mock::default();
    let error = campaign(&text, folder.path(), Opening::New, &mut mock).unwrap_err().to_string();
    assert!(error.contains("verifying failed: key 3 gave next hop 4, and 5 is right"), "{error}");
    assert_eq!(mock.runs, 0);
}

#[test]
fn a_figure_no_file_can_hold_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = QUESTION.replace("rate = 1000000.0", "rate = inf");
    let error = campaign(&text, folder.path(), Opening::New, &mut Mock::default()).unwrap_err();
    assert!(matches!(error, LabError::Figure { .. }), "{error}");
}
