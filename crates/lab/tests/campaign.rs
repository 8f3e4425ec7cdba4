//! Whole campaigns: order, repeats, interruption, resumption, the length of a campaign, and folders that cannot be used.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops where it cannot go on"
)]

mod mock;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use fullview_lab::{
    Archive, ArchiveError, LabError, MeasuredPanel, Opening, Outcome, PanelRecord, Runs, run,
};
use mock::bench::{Machine, MockBench, ProgressLog};
use mock::experiment::{EXPERIMENT, MockSettings, parse};

type Made = Result<(Outcome, Vec<MeasuredPanel>, ProgressLog), LabError>;

fn campaign(text: &str, folder: &Path, opening: Opening, mock: &mut MockBench) -> Made {
    let experiment = parse(text);
    let mut archive = Archive::open(folder, &experiment, opening)?;
    let mut progress = ProgressLog::default();
    let stop = Arc::clone(&mock.stop);
    let outcome = run(&experiment, &mut archive, mock, &mut progress, &stop)?;
    Ok((outcome, archive.panels().to_vec(), progress))
}

fn made(text: &str, folder: &Path, opening: Opening) -> (Outcome, Vec<MeasuredPanel>, ProgressLog) {
    campaign(text, folder, opening, &mut MockBench::default()).unwrap()
}

fn refused(text: &str, folder: &Path, opening: Opening) -> LabError {
    campaign(text, folder, opening, &mut MockBench::default()).expect_err("the campaign should be refused")
}

fn with_settings(settings: &str) -> String {
    EXPERIMENT.replace("subject = {", &format!("subject = {{ {settings},"))
}

fn until_decided(analysis: &str) -> String {
    EXPERIMENT.replace("runs = 4\n", "") + "[analysis]\n" + analysis
}

fn journal(folder: &Path) -> Vec<PanelRecord> {
    let text = fs::read_to_string(folder.join("panels.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn records(panels: &[MeasuredPanel]) -> Vec<PanelRecord> {
    panels.iter().map(|panel| panel.record.clone()).collect()
}

/// A panel without the times at which it was made.
fn timeless(panel: &MeasuredPanel) -> MeasuredPanel {
    let mut same = panel.clone();
    (same.record.started, same.record.seconds) = (String::new(), 0.0);
    same
}

fn blocks(panels: &[MeasuredPanel]) -> u32 {
    panels.iter().map(|panel| panel.record.block + 1).max().unwrap_or(0)
}

#[test]
fn the_plan_is_made_in_order_and_every_panel_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (mut mock, path) = (MockBench::default(), folder.path().join("results/x"));
    let (outcome, panels, progress) = campaign(EXPERIMENT, &path, Opening::New, &mut mock).unwrap();
    assert_eq!((outcome, panels.len()), (Outcome::Complete, 8));
    // Three members: the two variants and the copy of the baseline.
    assert_eq!((mock.panels, mock.verified, progress.finished), (8, 24, 8));
    assert_eq!(progress.goals, [8]);
    assert_eq!(progress.estimated.as_micros(), 8 * (5_000 + 10_000 * 4 * 3 / 2));
    assert_eq!(progress.shares.last(), Some(&1.0));
    for (number, block) in panels.chunks(2).enumerate() {
        let families: BTreeSet<&str> = block.iter().map(|panel| panel.record.family.as_str()).collect();
        assert_eq!(families, BTreeSet::from(["inet", "inet6"]));
        assert!(block.iter().all(|panel| panel.record.block == number as u32 && panel.record.is_valid()));
    }
    let seeds: BTreeSet<u64> = panels.iter().map(|panel| panel.record.seed).collect();
    assert_eq!(seeds.len(), 8);
    assert_eq!(journal(&path), records(&panels));
    assert_eq!(fs::read_to_string(path.join("campaign.toml")).unwrap(), EXPERIMENT);
}

#[test]
fn every_turn_of_every_arm_is_in_the_archive() {
    let folder = tempfile::tempdir().unwrap();
    let (_, panels, _) = made(EXPERIMENT, folder.path(), Opening::New);
    for MeasuredPanel { record, slices } in &panels {
        assert_eq!((record.controls, record.members.len(), slices.arms()), (1, 3, 4));
        assert_eq!((slices.rounds(), record.rounds), (20, 20));
        assert!((0..4).all(|arm| slices.of(arm).flatten().count() == 20));
        assert!(folder.path().join("slices").join(&record.slices).exists());
    }
    let names: Vec<&str> = panels[0].record.members.iter().map(|member| member.variant.as_str()).collect();
    assert_eq!(names, ["before", "after", "before"]);
}

#[test]
fn the_order_of_turns_differs_from_round_to_round() {
    let folder = tempfile::tempdir().unwrap();
    let mut mock = MockBench::default();
    campaign(EXPERIMENT, folder.path(), Opening::New, &mut mock).unwrap();
    assert!(mock.orders().len() > 10, "{:?}", mock.orders());
}

#[test]
fn the_same_seed_makes_the_same_campaign() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [one, other] = folders.each_ref().map(|folder| made(EXPERIMENT, folder.path(), Opening::New).1);
    assert!(one.iter().map(timeless).eq(other.iter().map(timeless)));
    let folder = tempfile::tempdir().unwrap();
    let (_, another, _) = made(&EXPERIMENT.replace("seed = 1", "seed = 2"), folder.path(), Opening::New);
    assert_ne!(one[0].record.seed, another[0].record.seed);
}

#[test]
fn the_length_of_turns_is_calibrated_once_for_each_family() {
    let folder = tempfile::tempdir().unwrap();
    let (_, panels, _) = made(EXPERIMENT, folder.path(), Opening::New);
    let calibrated: Vec<(u32, &str)> = panels
        .iter()
        .filter(|panel| panel.record.calibration.is_some())
        .map(|panel| (panel.record.block, panel.record.family.as_str()))
        .collect();
    assert_eq!(BTreeSet::from_iter(calibrated), BTreeSet::from([(0, "inet"), (0, "inet6")]));
    assert!(panels.iter().all(|panel| panel.record.turns.slice_us == 500.0));
    assert!(panels.iter().all(|panel| panel.record.turns.lead_in_us == 250.0));
}

#[test]
fn a_member_that_needs_long_turns_gets_them() {
    let folder = tempfile::tempdir().unwrap();
    let text = EXPERIMENT.replace("set = {", "set = { short_costs = 0.018,");
    let (_, panels, _) = made(&text, folder.path(), Opening::New);
    let tried = &panels[0].record.calibration.as_ref().unwrap().tried;
    let lengths: Vec<f64> = tried.iter().map(|tried| tried.slice_us).collect();
    assert_eq!(lengths, [500.0, 1000.0, 2000.0, 4000.0]);
    assert!(panels.iter().all(|panel| panel.record.turns.slice_us == 4000.0));
}

#[test]
fn an_experiment_can_set_the_length_of_turns() {
    let folder = tempfile::tempdir().unwrap();
    let text = EXPERIMENT.replace("measure_s = 0.01", "measure_s = 0.01, slice_ms = 1.0");
    let (_, panels, _) = made(&text, folder.path(), Opening::New);
    assert!(panels.iter().all(|panel| panel.record.calibration.is_none() && panel.slices.rounds() == 10));
}

/// In other turns than the experiment asks for, the rates would be others.
#[test]
fn turns_that_the_subject_cannot_run_are_refused_with_the_lengths_that_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let text = EXPERIMENT.replace("measure_s = 0.01", "measure_s = 0.01, slice_ms = 9.0");
    let refused = refused(&text, folder.path(), Opening::New);
    let LabError::Experiment(error) = &refused else { panic!("{refused}") };
    assert_eq!((error.line, error.column), (7, 59), "{error}");
    assert!(error.message.contains("a slice of 9 ms") && error.message.contains("0.5 to 8 ms"), "{error}");
    assert!(journal(folder.path()).is_empty());
}

#[test]
fn a_panel_with_an_invalid_member_is_kept_and_repeated_whole_at_the_end_of_its_block() {
    let folder = tempfile::tempdir().unwrap();
    let (_, panels, progress) = made(&with_settings("invalid_panels = 1"), folder.path(), Opening::New);
    assert_eq!(panels.len(), 9);
    let attempts: Vec<u32> = progress.started.iter().map(|(_, _, attempt)| *attempt).collect();
    assert_eq!(attempts[..4], [0, 0, 1, 0]);
    let (first, repeat) = (&panels[0].record, &panels[2].record);
    assert_eq!(first.validity.to_string(), "wrong flows");
    assert_eq!((&first.family, first.block, first.seed), (&repeat.family, repeat.block, repeat.seed));
    assert!(repeat.is_valid());
    assert_eq!(panels[2].slices.arms(), 4);
    assert_ne!(first.slices, repeat.slices);
}

#[test]
fn a_panel_on_a_disturbed_machine_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine { disturbed: 0.02, ..Machine::default() };
    let mut mock = MockBench { machine, ..MockBench::default() };
    let (_, panels, _) = campaign(EXPERIMENT, folder.path(), Opening::New, &mut mock).unwrap();
    assert!(panels.iter().all(|panel| panel.record.is_valid()));
}

#[test]
fn the_number_of_repeats_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let text = with_settings("invalid_panels = 1000") + "[analysis]\nretries = 1\nmax_repeats = 8\n";
    let (outcome, panels, _) = made(&text, folder.path(), Opening::New);
    assert_eq!((outcome, panels.len()), (Outcome::Complete, 16));
}

/// Every planned panel is made once, and half as many repeats are made.
#[test]
fn repeats_make_a_campaign_at_most_half_as_long_again() {
    let folder = tempfile::tempdir().unwrap();
    let text = with_settings("invalid_panels = 1000");
    let (outcome, panels, _) = made(&text, folder.path(), Opening::New);
    assert_eq!((outcome, panels.len()), (Outcome::Complete, 8 + 4));
    assert_eq!(panels.iter().filter(|panel| panel.record.attempt == 0).count(), 8);
    let (_, again, _) = made(&text, folder.path(), Opening::Resume);
    assert_eq!(again.len(), 12);
    let report = fullview_lab::report(folder.path()).unwrap();
    let words = "8 of the 8 planned panels have no valid result, in 2 families: see the validity table; the campaign made \
                 all 4 repeats of invalid panels that it is allowed";
    assert!(report.warnings().iter().any(|line| line.starts_with(words)), "{:?}", report.warnings());
    assert!(report.readme().contains("at most 4 repeats in the whole campaign; this campaign made 4."));
}

#[test]
fn a_member_that_is_set_aside_takes_no_turns_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let third = "[[variants]]\nname = \"other\"\nlabel = \"another\"\nset = { refuses = true }\n";
    let (outcome, panels, _) = made(&(EXPERIMENT.to_owned() + third), folder.path(), Opening::New);
    assert_eq!((outcome, panels.len()), (Outcome::Complete, 8));
    for MeasuredPanel { record, slices } in &panels {
        assert!(record.is_valid());
        assert_eq!(record.members[2].set_aside.map(|reason| reason.name()), Some("refused"));
        assert_eq!(record.members[2].findings.events, ["it has no such table"]);
        assert_eq!(slices.of(record.arm_of(2)).flatten().count(), 0);
        assert_eq!(slices.of(record.arm_of(1)).flatten().count(), 20);
    }
}

#[test]
fn an_interrupted_campaign_continues_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let mut stopping = MockBench { stop_in: Some(5), ..MockBench::default() };
    let (outcome, panels, _) = campaign(EXPERIMENT, folder.path(), Opening::New, &mut stopping).unwrap();
    assert_eq!((outcome, panels.len()), (Outcome::Interrupted, 5));
    assert_eq!(panels[4].record.validity.to_string(), "interrupted");

    let (outcome, panels, progress) = made(EXPERIMENT, folder.path(), Opening::Resume);
    assert_eq!((outcome, progress.goals, panels.len()), (Outcome::Complete, vec![4], 9));
    assert_eq!(panels.iter().filter(|panel| panel.record.is_valid()).count(), 8);
    // The interrupted panel is made again and does not count as a repeat.
    assert_eq!((&panels[5].record.family, panels[5].record.attempt), (&panels[4].record.family, 1));

    let whole = tempfile::tempdir().unwrap();
    let (_, uninterrupted, _) = made(EXPERIMENT, whole.path(), Opening::New);
    let valid = |panels: &[MeasuredPanel]| {
        let mut valid: Vec<MeasuredPanel> = panels
            .iter()
            .filter(|panel| panel.record.attempt == 0 && panel.record.is_valid())
            .map(timeless)
            .collect();
        valid.sort_by_key(|panel| (panel.record.block, panel.record.family.clone()));
        valid
    };
    let (resumed, mut expected) = (valid(&panels), valid(&uninterrupted));
    expected.retain(|panel| {
        (panel.record.block, &panel.record.family) != (panels[4].record.block, &panels[4].record.family)
    });
    assert_eq!(resumed, expected);
}

/// The calibration of a stopped panel may have seen a part of what it needed.
#[test]
fn a_calibration_that_was_stopped_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut stopping = MockBench { stop_in: Some(1), ..MockBench::default() };
    let (_, panels, _) = campaign(EXPERIMENT, folder.path(), Opening::New, &mut stopping).unwrap();
    assert!(panels[0].record.calibration.is_none());
    let (_, panels, _) = made(EXPERIMENT, folder.path(), Opening::Resume);
    assert_eq!(panels.iter().filter(|panel| panel.record.calibration.is_some()).count(), 2);
}

#[test]
fn an_incomplete_last_line_loses_one_panel() {
    let folder = tempfile::tempdir().unwrap();
    made(EXPERIMENT, folder.path(), Opening::New);
    let path = folder.path().join("panels.jsonl");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 40]).unwrap();

    let report = fullview_lab::report(folder.path()).unwrap();
    assert!(report.readme().contains("line 8 of the journal is incomplete"), "{:?}", report.warnings());
    let (_, panels, progress) = made(EXPERIMENT, folder.path(), Opening::Resume);
    assert_eq!((progress.goals, panels.len()), (vec![1], 8));
    assert_eq!(journal(folder.path()), records(&panels));
}

#[test]
fn a_last_line_without_its_line_break_is_a_panel() {
    let folder = tempfile::tempdir().unwrap();
    made(EXPERIMENT, folder.path(), Opening::New);
    let path = folder.path().join("panels.jsonl");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();

    let (_, _, progress) = made(EXPERIMENT, folder.path(), Opening::Resume);
    assert_eq!(progress.goals, [0]);
    assert_eq!(fs::read(&path).unwrap(), whole);
}

#[test]
fn the_error_of_a_changed_line_contains_its_number() {
    let folder = tempfile::tempdir().unwrap();
    made(EXPERIMENT, folder.path(), Opening::New);
    let path = folder.path().join("panels.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"block\":1", "\"bloc\":1", 1)).unwrap();
    let error = refused(EXPERIMENT, folder.path(), Opening::Resume);
    assert!(error.to_string().contains("panels.jsonl:3: not a panel record"), "{error}");
}

#[test]
fn a_file_of_slices_that_is_missing_or_damaged_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (_, panels, _) = made(EXPERIMENT, folder.path(), Opening::New);
    let name = &panels[3].record.slices;
    let path = folder.path().join("slices").join(name);
    let whole = fs::read(&path).unwrap();
    let errors = || {
        [
            refused(EXPERIMENT, folder.path(), Opening::Resume),
            fullview_lab::report(folder.path()).unwrap_err(),
        ]
    };

    fs::remove_file(&path).unwrap();
    for error in errors().map(|error| error.to_string()) {
        assert!(error.contains(name.as_str()) && error.contains("cannot read"), "{error}");
    }
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x55;
    fs::write(&path, damaged).unwrap();
    for error in errors().map(|error| error.to_string()) {
        assert!(error.contains(name.as_str()) && error.contains("not a file of slices"), "{error}");
    }
    fs::write(&path, whole).unwrap();
    assert!(fullview_lab::report(folder.path()).is_ok());
}

#[test]
fn a_campaign_is_only_replaced_by_force() {
    let folder = tempfile::tempdir().unwrap();
    made(&EXPERIMENT.replace("runs = 4", "runs = 6"), folder.path(), Opening::New);
    let error = refused(EXPERIMENT, folder.path(), Opening::New);
    assert!(matches!(error, LabError::Archive(ArchiveError::Exists { .. })), "{error}");

    ["graph.png", "ratios.png"].iter().for_each(|name| fs::write(folder.path().join(name), "old").unwrap());
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    fs::write(folder.path().join("slices/notes.txt"), "mine").unwrap();
    let (_, panels, _) = made(EXPERIMENT, folder.path(), Opening::Force);
    assert_eq!(panels.len(), 8);
    assert!(!folder.path().join("graph.png").exists() && !folder.path().join("ratios.png").exists());
    assert!(folder.path().join("notes.txt").exists());
    assert!(folder.path().join("slices/notes.txt").exists());
    let slices = fs::read_dir(folder.path().join("slices")).unwrap().count();
    assert_eq!(slices, 8 + 1);
}

#[test]
fn only_the_same_experiment_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let error = refused(EXPERIMENT, folder.path(), Opening::Resume);
    assert!(matches!(error, LabError::Archive(ArchiveError::NothingToResume { .. })), "{error}");

    made(EXPERIMENT, folder.path(), Opening::New);
    let other = EXPERIMENT.replace("1050000.0", "1060000.0");
    let error = refused(&other, folder.path(), Opening::Resume).to_string();
    assert!(error.contains("variants[1].set.rate: 1050000.0 → 1060000.0"), "{error}");
    let wider = EXPERIMENT.to_owned() + "[analysis]\nmargin = 0.5\n";
    let error = refused(&wider, folder.path(), Opening::Resume).to_string();
    assert!(error.contains("analysis.margin: 0.01 → 0.5"), "{error}");
}

#[test]
fn a_resumed_campaign_may_have_more_blocks_and_keeps_its_first_look() {
    let folder = tempfile::tempdir().unwrap();
    let (_, first, _) = made(EXPERIMENT, folder.path(), Opening::New);
    let longer = EXPERIMENT.replace("runs = 4", "runs = 6");
    assert_ne!(longer, EXPERIMENT);
    let (_, all, _) = made(&longer, folder.path(), Opening::Resume);
    assert_eq!((first.len(), all.len()), (8, 12));
    assert_eq!(first[..], all[..8]);
    let archived = fs::read_to_string(folder.path().join("campaign.toml")).unwrap();
    assert!(archived.contains("runs = 6") && archived.contains("first_look = 4"), "{archived}");
    // Looks are at 4, 5 and 8 blocks: what 6 blocks show is judged with the first five, as if none were resumed.
    let json = report_json(folder.path());
    assert_eq!(json["comparisons"][0]["look"]["blocks"], 5);
    assert_eq!(json["comparisons"][0]["look"]["number"], 2);
}

/// Otherwise a later look at fewer blocks would be the first one again, with the first one's part of alpha.
#[test]
fn fewer_blocks_than_before_do_not_move_the_looks() {
    let folder = tempfile::tempdir().unwrap();
    made(EXPERIMENT, folder.path(), Opening::New);
    let (_, panels, progress) =
        made(&EXPERIMENT.replace("runs = 4", "runs = 3"), folder.path(), Opening::Resume);
    assert_eq!((panels.len(), progress.goals), (8, vec![0]));
    assert_eq!(report_json(folder.path())["comparisons"][0]["look"]["blocks"], 4);
}

/// The record of such a campaign has looks that its blocks never reach. It can be continued like any other.
#[test]
fn a_campaign_that_was_resumed_with_fewer_blocks_can_be_resumed_with_more() {
    let folder = tempfile::tempdir().unwrap();
    let mut stopped = MockBench { stop_in: Some(2), ..MockBench::default() };
    campaign(EXPERIMENT, folder.path(), Opening::New, &mut stopped).unwrap();
    made(&EXPERIMENT.replace("runs = 4", "runs = 2"), folder.path(), Opening::Resume);
    let archived = fs::read_to_string(folder.path().join("campaign.toml")).unwrap();
    assert!(archived.contains("runs = 2") && archived.contains("first_look = 4"), "{archived}");
    let (_, panels, _) = made(&EXPERIMENT.replace("runs = 4", "runs = 6"), folder.path(), Opening::Resume);
    assert_eq!(blocks(&panels), 6);
    assert_eq!(report_json(folder.path())["comparisons"][0]["look"]["blocks"], 5);
}

fn report_json(folder: &Path) -> serde_json::Value {
    serde_json::from_str(fullview_lab::report(folder).unwrap().json()).unwrap()
}

#[test]
fn a_campaign_ends_at_the_look_at_which_it_is_decided() {
    let folder = tempfile::tempdir().unwrap();
    let (outcome, panels, progress) = made(&until_decided(""), folder.path(), Opening::New);
    assert_eq!((outcome, blocks(&panels)), (Outcome::Complete, 5));
    assert_eq!(progress.goals, [10]);
    let (_, again, progress) = made(&until_decided(""), folder.path(), Opening::Resume);
    assert_eq!((again.len(), progress.goals), (panels.len(), vec![0]));
}

/// A member as fast as its control has no share, so that more blocks would not decide anything.
#[test]
fn a_campaign_whose_share_is_unknown_does_not_wait_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let text = until_decided("first_look = 3\nmax_blocks = 20\n").replace("1050000.0", "4000000.0");
    let (_, panels, _) = made(&text, folder.path(), Opening::New);
    assert_eq!(blocks(&panels), 3);
}

/// The interval of a difference of nearly the margin never excludes it.
fn undecided(analysis: &str) -> String {
    until_decided(analysis).replace("1050000.0", "1010050.0")
}

#[test]
fn a_campaign_that_is_not_decided_goes_on_to_its_largest_number_of_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let (_, panels, progress) =
        made(&undecided("first_look = 3\nmax_blocks = 9\n"), folder.path(), Opening::New);
    // Looks at 3, 4, 6, 8 blocks; the next would be at 12.
    assert_eq!(progress.goals, [6, 2, 4, 4]);
    assert_eq!(blocks(&panels), 8);
    let (_, more, progress) =
        made(&undecided("first_look = 3\nmax_blocks = 12\n"), folder.path(), Opening::Resume);
    assert_eq!((blocks(&more), progress.goals), (12, vec![0, 8]));
    assert_eq!(more[..panels.len()], panels[..]);
}

#[test]
fn a_campaign_ends_at_the_last_look_that_its_time_allows() {
    let folder = tempfile::tempdir().unwrap();
    let (outcome, panels, _) = made(&undecided("max_minutes = 1e-9\n"), folder.path(), Opening::New);
    assert_eq!((outcome, blocks(&panels)), (Outcome::Complete, 5));
}

#[test]
fn a_variant_that_takes_no_turns_does_not_prolong_a_campaign() {
    let folder = tempfile::tempdir().unwrap();
    let text = until_decided("").replace("set = {", "set = { refuses = true,");
    let (_, panels, _) = made(&text, folder.path(), Opening::New);
    assert_eq!(blocks(&panels), 5);
}

#[test]
fn an_interrupted_campaign_goes_on_to_the_look_before_which_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let text = undecided("first_look = 4\nmax_blocks = 6\n");
    let mut stopping = MockBench { stop_in: Some(9), ..MockBench::default() };
    let (_, _, progress) = campaign(&text, folder.path(), Opening::New, &mut stopping).unwrap();
    assert_eq!(progress.goals, [8, 2]);
    let (outcome, panels, progress) = made(&text, folder.path(), Opening::Resume);
    assert_eq!((outcome, blocks(&panels), progress.goals), (Outcome::Complete, 5, vec![2]));
}

#[test]
fn files_of_a_folder_without_a_campaign_are_never_replaced() {
    for name in ["README.md", "report.json", "graph.svg", "slices/block.zst"] {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("slices")).unwrap();
        fs::write(folder.path().join(name), "mine").unwrap();
        for opening in [Opening::New, Opening::Force] {
            let error = refused(EXPERIMENT, folder.path(), opening).to_string();
            assert!(error.contains(name) && error.contains("another folder with --out"), "{error}");
        }
        assert_eq!(fs::read_to_string(folder.path().join(name)).unwrap(), "mine");
        assert!(!folder.path().join("panels.jsonl").exists(), "{name}");
    }
}

#[test]
fn a_campaign_of_whole_runs_is_reported_and_not_continued() {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/schema-1");
    for name in ["campaign.toml", "host.json", "runs.jsonl"] {
        fs::copy(source.join(name), folder.path().join(name)).unwrap();
    }
    assert!(fullview_lab::report(folder.path()).unwrap().readme().contains("22 runs"));
    let error = refused(EXPERIMENT, folder.path(), Opening::Resume);
    assert!(matches!(error, LabError::Archive(ArchiveError::OldSchema { .. })), "{error}");
    let error = refused(EXPERIMENT, folder.path(), Opening::New);
    assert!(matches!(error, LabError::Archive(ArchiveError::Exists { .. })), "{error}");
    let (_, panels, _) = made(EXPERIMENT, folder.path(), Opening::Force);
    assert_eq!(panels.len(), 8);
    assert!(!folder.path().join("runs.jsonl").exists());
}

#[test]
fn only_the_same_machine_can_resume() {
    let folder = tempfile::tempdir().unwrap();
    made(EXPERIMENT, folder.path(), Opening::New);
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
    experiment.runs = Runs::Blocks(3);
    experiment.note = Some("two\nlines".into());
    experiment.variants[1].set = MockSettings { wrong: Some(false), ..MockSettings::default() };
    drop(Archive::open(folder.path(), &experiment, Opening::New).unwrap());
    let text = fs::read_to_string(folder.path().join("campaign.toml")).unwrap();
    let heading: Vec<&str> = text.lines().take(5).collect();
    assert_eq!(
        heading,
        [
            "# experiment.toml with these changes:",
            "#   note: nothing → \"two\\nlines\"",
            "#   runs: 4 → 3",
            "#   variants[1].set.rate: 1050000.0 → nothing",
            "#   variants[1].set.wrong: nothing → false",
        ]
    );
    let (_, panels, _) = made(&text, folder.path(), Opening::Resume);
    assert_eq!(panels.len(), 6);
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
fn a_folder_that_cannot_be_written_is_refused_before_the_first_panel() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let mut mock = MockBench::default();
    let error = campaign(EXPERIMENT, &file.join("x"), Opening::New, &mut mock).unwrap_err().to_string();
    assert!(
        error.contains("file/x: cannot write") && error.contains("a part of the path is a file"),
        "{error}"
    );
    assert_eq!(mock.panels, 0);
}

#[test]
fn a_wrong_member_is_not_measured() {
    let folder = tempfile::tempdir().unwrap();
    let text = EXPERIMENT.replace("set = {", "set = { wrong = true,");
    let mut mock = MockBench::default();
    let error = campaign(&text, folder.path(), Opening::New, &mut mock).unwrap_err().to_string();
    assert!(error.starts_with("after, inet"), "{error}");
    assert!(error.contains("verifying failed: key 3 gave next hop 4, and 5 is right"), "{error}");
    assert_eq!(mock.slices, 0);
}

#[test]
fn a_counter_that_is_not_finite_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = with_settings("counter = inf");
    let error = campaign(&text, folder.path(), Opening::New, &mut MockBench::default()).unwrap_err();
    assert!(matches!(error, LabError::Figure { .. }), "{error}");
}
