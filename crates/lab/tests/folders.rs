//! What is made of whole folders: the comparison of two, the noise of one, and the forecast that follows from it. The bench
//! is simulated, so that the true differences are known.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests stand outside `#[test]` functions

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fullview_lab::compare::{CompareError, FolderComparison, compare};
use fullview_lab::forecast::{forecast, seen_after};
use fullview_lab::noise::{Noise, copies_of_baseline};
use fullview_lab::stats::Verdict;
use fullview_lab::{
    Archive, Arm, Bench, Experiment, Findings, Opening, Panel, PanelError, PanelRecord, PanelStart,
    PanelWork, Progress, Runs, Settings, Slice, SliceLimits, SubjectError, Verified, run,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Nanoseconds of a packet in the control, and in the member beyond them.
const OF_CONTROL: f64 = 10.0;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Simulated {
    own_ns: Option<f64>,
    /// Nanoseconds of a packet in the control of the member; members of the same have one control.
    bed_ns: Option<f64>,
    table: Option<String>,
}

impl Settings for Simulated {
    fn over(self, base: &Self) -> Self {
        Self {
            own_ns: self.own_ns.or(base.own_ns),
            bed_ns: self.bed_ns.or(base.bed_ns),
            table: self.table.or(base.table.clone()),
        }
    }
}

impl Simulated {
    fn bed(&self) -> f64 {
        self.bed_ns.unwrap_or(OF_CONTROL)
    }
}

/// A machine whose speed differs from round to round by far more than the members do.
struct SimulatedBench {
    speed: f64,
    /// Standard deviation of what a whole block adds to a member, in logarithms.
    block_noise: f64,
}

struct SimulatedPanel {
    times: Vec<f64>,
    /// The control of each member, and what a packet takes in each.
    control_of: Vec<usize>,
    beds: Vec<f64>,
    random: ChaCha8Rng,
    speed: f64,
}

impl Bench<Simulated> for SimulatedBench {
    fn panel(
        &mut self,
        members: &[Simulated],
        _family: &str,
        seed: u64,
        work: PanelWork<'_>,
    ) -> Result<(), PanelError> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut time = |member: &Simulated| {
            (member.bed() + member.own_ns.unwrap_or(10.0)) * (self.block_noise * normal(&mut random)).exp()
        };
        let times = members.iter().map(&mut time).collect();
        let mut beds: Vec<f64> = Vec::new();
        let mut control = |member: &Simulated| {
            let known = beds.iter().position(|bed| *bed == member.bed());
            known.unwrap_or_else(|| {
                beds.push(member.bed());
                beds.len() - 1
            })
        };
        let control_of = members.iter().map(&mut control).collect();
        work(&mut SimulatedPanel { times, control_of, beds, random, speed: self.speed })
    }

    fn conditions(&mut self) -> Vec<String> {
        vec!["simulated".into()]
    }
}

/// Nearly normal: the sum of twelve uniform numbers.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
}

impl Panel for SimulatedPanel {
    fn controls(&self) -> usize {
        self.beds.len()
    }

    fn control_of(&self, member: usize) -> usize {
        self.control_of[member]
    }

    fn subtracts(&self) -> bool {
        true
    }

    fn slice_limits(&self) -> SliceLimits {
        SliceLimits { shortest: Duration::from_millis(1), longest: Duration::from_millis(1) }
    }

    fn verify(&mut self, _member: usize) -> Result<Verified, SubjectError> {
        Ok(Verified::Ready)
    }

    fn slice(&mut self, arm: Arm, _lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        let time = match arm {
            Arm::Control(control) => self.beds[control],
            Arm::Member(member) => self.times[member],
        };
        let noise = (0.001 * normal(&mut self.random)).exp();
        let counted = (length.as_nanos() as f64 / time * self.speed * noise) as u64;
        Ok(Slice { counted, offered: counted, time: length, lost_core: Duration::ZERO })
    }

    fn findings(&mut self, _member: usize) -> Findings {
        Findings::default()
    }

    fn bed_findings(&mut self) -> Findings {
        Findings::default()
    }
}

struct Silent;

impl Progress for Silent {
    fn started(&mut self, _panels: usize, _estimated: Duration) {}
    fn panel_started(&mut self, _panel: &PanelStart<'_>) {}
    fn panel_advanced(&mut self, _share: f64) {}
    fn panel_finished(&mut self, _record: &PanelRecord, _remaining: Duration) {}
}

const EXPERIMENT: &str = r#"
title = "A router"
runs = 8
seed = 1
families = [{ name = "inet", title = "IPv4" }, { name = "inet6", title = "IPv6" }]
window = { warmup_s = 0.0, measure_s = 0.05, slice_ms = 1.0 }
subject = { own_ns = 10.0 }
variants = [{ name = "radix", label = "radix" }, { name = "dxr", label = "DXR", set.own_ns = 5.0 }]
"#;

fn parse(text: &str) -> Experiment<Simulated> {
    Experiment::parse("router.toml", text).unwrap()
}

fn measure(experiment: &Experiment<Simulated>, bench: &mut SimulatedBench, folder: &Path) -> PathBuf {
    let mut archive = Archive::open(folder, experiment, Opening::New).unwrap();
    run(experiment, &mut archive, bench, &mut Silent, &AtomicBool::new(false)).unwrap();
    folder.into()
}

const QUIET: f64 = 0.002;

/// Compares two campaigns of these texts, the second on a machine of half the speed.
fn compared(before: &str, after: &str) -> Result<FolderComparison, CompareError> {
    let dir = tempfile::tempdir().unwrap();
    let fast = &mut SimulatedBench { speed: 1.0, block_noise: QUIET };
    let slow = &mut SimulatedBench { speed: 0.5, block_noise: QUIET };
    let before = measure(&parse(before), fast, &dir.path().join("before"));
    let after = measure(&parse(after), slow, &dir.path().join("after"));
    compare(&before, &after)
}

fn seed(text: &str, seed: u32) -> String {
    text.replace("seed = 1", &format!("seed = {seed}"))
}

/// The reasons why two campaigns are not compared.
fn reasons(before: &str, after: &str) -> String {
    match compared(before, after) {
        Err(CompareError::Different { reasons, .. }) => reasons.join("\n"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_same_program_on_a_slower_machine_is_equivalent() {
    let compared = compared(EXPERIMENT, &seed(EXPERIMENT, 2)).unwrap();
    assert_eq!(compared.cells.len(), 4);
    for cell in &compared.cells {
        assert_eq!((cell.verdict, cell.blocks), (Some(Verdict::Equivalent), [8, 8]), "{cell:?}");
        assert!((cell.control.unwrap() + 0.5).abs() < 0.01, "{cell:?}");
    }
    assert!(compared.left_out.is_empty() && compared.untrusted.is_empty());
    assert!(compared.weaker[0].contains("different times") && compared.weaker[1].contains("no round"));
    assert!(compared.weaker[2].contains("alpha = 0.05: repeated while a campaign grows"));
}

/// The settings are the same, but the program needs 8 ns where it needed 10: (10 + 10) / (10 + 8) of the rate.
#[test]
fn a_faster_program_is_better_by_the_factor_of_its_rates() {
    let dir = tempfile::tempdir().unwrap();
    let bench = &mut SimulatedBench { speed: 1.0, block_noise: QUIET };
    let before = measure(&parse(EXPERIMENT), bench, &dir.path().join("before"));
    let faster = EXPERIMENT.replace("subject = { own_ns = 10.0 }", "subject = { own_ns = 8.0 }");
    let after = measure(&parse(&seed(&faster, 2)), bench, &dir.path().join("after"));
    let campaign = after.join("campaign.toml");
    let claimed = std::fs::read_to_string(&campaign).unwrap().replace("8.0", "10.0");
    std::fs::write(&campaign, claimed).unwrap();
    let compared = compare(&before, &after).unwrap();
    let [radix, dxr] = [&compared.cells[0], &compared.cells[1]];
    assert_eq!((radix.verdict, dxr.verdict), (Some(Verdict::Better), Some(Verdict::Equivalent)));
    let [whole, share] = [radix.whole.unwrap(), radix.share.unwrap()];
    assert!(whole.low < 20.0 / 18.0 - 1.0 && 20.0 / 18.0 - 1.0 < whole.high, "{whole:?}");
    assert!(share.low < 0.25 && 0.25 < share.high, "{share:?}");
}

/// The machine carries the bed of one variant, and the variant with it, at half the speed, and that of the other as before.
#[test]
fn a_variant_is_compared_with_the_control_of_its_own_bed() {
    let dir = tempfile::tempdir().unwrap();
    let bench = &mut SimulatedBench { speed: 1.0, block_noise: QUIET };
    let text = EXPERIMENT.replace("set.own_ns = 5.0", "set = { own_ns = 20.0, bed_ns = 20.0 }");
    let before = measure(&parse(&text), bench, &dir.path().join("before"));
    let halved = text.replace("own_ns = 20.0, bed_ns = 20.0", "own_ns = 40.0, bed_ns = 40.0");
    let after = measure(&parse(&seed(&halved, 2)), bench, &dir.path().join("after"));
    let campaign = |folder: &Path| folder.join("campaign.toml");
    std::fs::copy(campaign(&before), campaign(&after)).unwrap();
    let compared = compare(&before, &after).unwrap();
    for (cell, control) in compared.cells.iter().zip([0.0, -0.5, 0.0, -0.5]) {
        assert_eq!(cell.verdict, Some(Verdict::Equivalent), "{cell:?}");
        assert!((cell.control.unwrap() - control).abs() < 0.01, "{cell:?}");
    }
}

#[test]
fn campaigns_of_other_questions_are_refused_with_the_difference() {
    let metric = EXPERIMENT.to_owned() + "analysis.metric = \"lookups per second\"\n";
    assert!(reasons(EXPERIMENT, &metric).contains("\"lookups per second\""));
    let settings = EXPERIMENT.replace("set.own_ns = 5.0", "set.own_ns = 6.0");
    assert!(reasons(EXPERIMENT, &settings).contains("dxr has other settings, own_ns: 5.0 → 6.0"));
    let names = EXPERIMENT.replace("\"radix\"", "\"one\"").replace("\"dxr\"", "\"two\"");
    assert!(reasons(EXPERIMENT, &names).contains("no variant and family of the same names"));
}

/// Both calibrated, and found other lengths.
#[test]
fn turns_of_other_lengths_are_named_with_their_family() {
    let dir = tempfile::tempdir().unwrap();
    let bench = &mut SimulatedBench { speed: 1.0, block_noise: QUIET };
    let [before, after] = ["before", "after"].map(|folder| dir.path().join(folder));
    measure(&parse(EXPERIMENT), bench, &before);
    measure(&parse(EXPERIMENT), bench, &after);
    let turns = || compare(&before, &after).unwrap().weaker.into_iter().filter(|why| why.contains("turns"));
    assert_eq!(turns().count(), 0);
    let panels = after.join("panels.jsonl");
    let longer = |line: &str| match line.contains(r#""family":"inet6""#) {
        true => line.replace(r#""slice_us":1000.0"#, r#""slice_us":8000.0"#),
        false => line.to_owned(),
    };
    let text: String =
        std::fs::read_to_string(&panels).unwrap().lines().map(|line| longer(line) + "\n").collect();
    std::fs::write(&panels, text).unwrap();
    let [other] = &turns().collect::<Vec<_>>()[..] else { panic!("{:?}", turns().collect::<Vec<_>>()) };
    assert!(other.starts_with("IPv6: ") && other.contains("1000 µs before and 8000 µs after"), "{other}");
}

/// The settings name the same file, and the digest shows that its routes are others.
#[test]
fn conditions_that_differ_are_named_except_the_folders_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let bench = &mut SimulatedBench { speed: 1.0, block_noise: QUIET };
    let mut folders = 0;
    let mut weaker = |digests: [u32; 2]| {
        let [before, after] = digests.map(|digest| {
            folders += 1;
            let measured = measure(&parse(EXPERIMENT), bench, &dir.path().join(folders.to_string()));
            let table = format!("table: {}/view.txt (digest {digest})", measured.display());
            let host = measured.join("host.json");
            let text = std::fs::read_to_string(&host).unwrap();
            assert!(text.contains("\"simulated\""), "{text}");
            let with_table = format!("\"simulated\", \"{table}\"");
            std::fs::write(&host, text.replace("\"simulated\"", &with_table)).unwrap();
            measured
        });
        compare(&before, &after).unwrap().weaker
    };
    let alike = weaker([7, 7]);
    assert!(!alike.iter().any(|why| why.contains("table") || why.contains("simulated")), "{alike:?}");
    let other = weaker([7, 8]);
    for words in ["only before: table: view.txt (digest 7)", "only after: table: view.txt (digest 8)"] {
        assert!(other.iter().any(|why| why.ends_with(words)), "{words} is missing in {other:?}");
    }
}

#[test]
fn what_only_one_folder_has_is_left_out_and_named() {
    let fewer = EXPERIMENT.replace("{ name = \"radix\", label = \"radix\" }, ", "");
    let compared = compared(EXPERIMENT, &seed(&fewer, 3)).unwrap();
    assert_eq!(compared.cells.iter().map(|cell| cell.variant.as_str()).collect::<Vec<_>>(), ["dxr", "dxr"]);
    assert!(compared.left_out[0].starts_with("radix: only in "), "{:?}", compared.left_out);
}

#[test]
fn too_few_blocks_are_not_judged() {
    let short = EXPERIMENT.replace("runs = 8", "runs = 2");
    let compared = compared(EXPERIMENT, &short).unwrap();
    assert!(compared.cells.iter().all(|cell| cell.verdict.is_none() && cell.blocks == [8, 2]));
}

/// Three blocks are enough to compare folders, and the first look of a campaign, at which the copy is judged, is later.
#[test]
fn folders_whose_copies_are_not_judged_are_not_known_to_be_trusted() {
    let early = EXPERIMENT.replace("runs = 8", "runs = \"until decided\"") + "analysis.max_blocks = 3\n";
    let early = early + "analysis.first_look = 3\n";
    let dir = tempfile::tempdir().unwrap();
    let bench = &mut SimulatedBench { speed: 1.0, block_noise: QUIET };
    let before = measure(&parse(EXPERIMENT), bench, &dir.path().join("before"));
    let after = measure(&parse(&early), bench, &dir.path().join("after"));
    assert!(compare(&before, &after).unwrap().trust_unknown.is_empty());
    let campaign = after.join("campaign.toml");
    let later = std::fs::read_to_string(&campaign).unwrap().replace("first_look = 3", "first_look = 5");
    std::fs::write(&campaign, later).unwrap();
    let compared = compare(&before, &after).unwrap();
    assert!(compared.cells.iter().all(|cell| cell.verdict.is_some()) && compared.untrusted.is_empty());
    let [unknown] = &compared.trust_unknown[..] else { panic!("{:?}", compared.trust_unknown) };
    assert!(unknown.starts_with(&after.display().to_string()), "{unknown}");
    assert!(unknown.contains("was not judged there in IPv4 and IPv6"), "{unknown}");
}

#[test]
fn a_campaign_of_copies_shows_the_noise_that_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let experiment = parse(EXPERIMENT);
    let copies = copies_of_baseline(&experiment, 3, 20);
    let bench = &mut SimulatedBench { speed: 1.0, block_noise: 0.01 };
    let noise = Noise::of(&measure(&copies, bench, &dir.path().join("copies"))).unwrap();
    assert!(noise.of_copies && !noise.is_untrusted() && noise.blocks == 20);
    for family in &noise.families {
        // Two members, each with this noise; their shares are half of their time.
        let [whole, share] = [family.whole.unwrap(), family.share.unwrap()];
        assert!((whole.stddev / (0.01 * 2f64.sqrt()) - 1.0).abs() < 0.3, "{whole:?}");
        assert!((share.stddev / whole.stddev - 2.0).abs() < 0.2, "{share:?}");
        assert_eq!((whole.degrees_of_freedom, family.arms, family.lost_rounds), (57.0, 5, 0.0));
    }
    assert_eq!(noise.unfit_for(&experiment, &[]), Vec::<String>::new());
    let other = parse(&EXPERIMENT.replace("own_ns = 10.0", "own_ns = 11.0"));
    assert_eq!(noise.unfit_for(&other, &[]), ["own_ns: 10.0 → 11.0"]);
    assert_eq!(noise.unfit_for(&other, &["own_ns"]), Vec::<String>::new());
    let mut longer = experiment.clone();
    longer.window.measure_s *= 10.0;
    assert_eq!(noise.unfit_for(&longer, &[]), ["another [window]"]);
}

/// The second copy is slower by a fifth, and its record says that it has the settings of the others.
#[test]
fn a_copy_that_differs_from_the_first_one_is_found_wherever_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let mut copies = copies_of_baseline(&parse(EXPERIMENT), 3, 10);
    for (variant, own_ns) in copies.variants.iter_mut().zip([10.0, 15.0, 10.0]) {
        variant.set.own_ns = Some(own_ns);
    }
    let bench = &mut SimulatedBench { speed: 1.0, block_noise: 0.01 };
    let folder = measure(&copies, bench, &dir.path().join("copies"));
    let campaign = folder.join("campaign.toml");
    let text = std::fs::read_to_string(&campaign).unwrap();
    std::fs::write(&campaign, text.replace("own_ns = 15.0", "own_ns = 10.0")).unwrap();
    let noise = Noise::of(&folder).unwrap();
    assert!(noise.of_copies && noise.is_untrusted() && noise.is_judged());
    let differing: Vec<(&str, &str)> =
        noise.differing().map(|(family, name, _)| (&*family.title, name)).collect();
    assert_eq!(differing, [("IPv4", "copy-2"), ("IPv6", "copy-2")]);
    let names = noise.families[0].copies.iter().map(|copy| &*copy.name);
    assert_eq!(names.collect::<Vec<_>>(), ["copy-2", "copy-3", "hidden copy"]);
    // Three members in two families share the error rate of the only look, which spends half of it.
    let alone = noise.families[0].copies[2].judgement.unwrap();
    assert_eq!((alone.look.number, alone.look.blocks), (1, 10));
}

/// One of ten panels does not count, so that the look at ten blocks never comes; the copy is judged all the same.
#[test]
fn the_copy_is_judged_by_the_blocks_that_are_valid() {
    let dir = tempfile::tempdir().unwrap();
    let copies = |blocks| copies_of_baseline(&parse(EXPERIMENT), 2, blocks);
    let bench = &mut SimulatedBench { speed: 1.0, block_noise: 0.01 };
    let folder = measure(&copies(10), bench, &dir.path().join("ten"));
    let journal = folder.join("panels.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, text.replacen("[\"ok\"]", "[\"noisy_cores\"]", 1)).unwrap();
    let noise = Noise::of(&folder).unwrap();
    assert!(noise.is_judged() && noise.blocks == 9);
    let one = Noise::of(&measure(&copies(1), bench, &dir.path().join("one"))).unwrap();
    assert!(!one.is_judged() && !one.is_untrusted());
}

#[test]
fn a_forecast_sees_smaller_differences_with_more_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let mut experiment = parse(EXPERIMENT);
    let bench = &mut SimulatedBench { speed: 1.0, block_noise: 0.004 };
    let noise = Noise::of(&measure(&experiment, bench, &dir.path().join("pilot"))).unwrap();
    assert!(!noise.of_copies);
    experiment.runs = Runs::UntilDecided;
    let forecast = forecast(&experiment, Some(&noise));
    assert_eq!((forecast.cells, forecast.panels, forecast.arms, forecast.comparisons), (4, 2, 4, 2));
    let blocks: Vec<u32> = forecast.looks.iter().map(|look| look.blocks).collect();
    assert_eq!(blocks, [5, 7, 10, 14, 20, 28, 40]);
    for family in 0..2 {
        let seen: Vec<f64> = forecast.looks.iter().map(|look| look.families[family].seen.unwrap()).collect();
        assert!(seen.is_sorted_by(|one, next| one > next), "{seen:?}");
        assert!(seen[6] > experiment.analysis.margin && seen[6] < 0.05, "{seen:?}");
    }
    let five = &seen_after(&experiment, &noise, 5)[0];
    assert!(five.share_half_width.unwrap() > five.half_width.unwrap(), "{five:?}");
}

#[test]
fn a_forecast_without_noise_has_the_size_and_nothing_that_was_not_measured() {
    let forecast = forecast(&parse(EXPERIMENT), None);
    assert_eq!(forecast.looks.len(), 1);
    assert!(forecast.looks[0].blocks == 8 && forecast.looks[0].families.is_empty());
    assert!(forecast.block_minutes > 0.0);
}
