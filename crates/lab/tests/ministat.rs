//! ministat against the reference program, and with wrong input.
#![allow(clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use fullview_lab::ministat::{Confidence, MinistatError, Set, Style, parse, render, run};
use fullview_testnet::has;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The ministat of Debian (20150715), if it is installed.
fn reference_program() -> Option<PathBuf> {
    let path = PathBuf::from("/usr/bin/ministat");
    has(path.exists(), "/usr/bin/ministat: install the package `ministat`").then_some(path)
}

/// One random call of both programs, with the same files and options.
struct Trial {
    sets: Vec<Vec<String>>,
    options: Vec<String>,
    column: usize,
    delimiter: char,
}

impl Trial {
    fn random(rng: &mut ChaCha8Rng) -> Trial {
        let column = rng.random_range(1..4);
        let delimiter = [' ', '\t', ';', ':'][rng.random_range(0..4)];
        let mut options = vec![format!("-C{column}"), "-d".to_owned(), delimiter.to_string()];
        let level = ["80", "90", "95", "98", "99", "99.5"][rng.random_range(0..6)];
        options.extend(["-c".to_owned(), level.to_owned(), format!("-w{}", rng.random_range(2..160))]);
        options.extend(["-s", "-A", "-n"].into_iter().filter(|_| rng.random_bool(0.25)).map(str::to_owned));
        // Half of the trials have odd sets only, for which only the percent error differs by design.
        let (kind, odd) = (rng.random_range(0..4), rng.random_bool(0.5));
        let sets = (0..rng.random_range(1..=7)).map(|_| random_set(rng, kind, odd)).collect();
        Trial { sets, options, column, delimiter }
    }

    /// Writes the files; the values are in the trial's column, next to other columns.
    fn write(&self, folder: &Path) -> Vec<String> {
        let line = |value: &String| {
            let mut columns = vec!["77".to_owned(); self.column - 1];
            columns.extend([value.clone(), "88".to_owned()]);
            columns.join(&self.delimiter.to_string()) + "\n"
        };
        let names: Vec<String> = (0..self.sets.len()).map(|index| format!("set{index}")).collect();
        for (name, set) in names.iter().zip(&self.sets) {
            std::fs::write(folder.join(name), set.iter().map(line).collect::<String>()).expect("written");
        }
        names.into_iter().map(|name| folder.join(name).to_string_lossy().into_owned()).collect()
    }
}

/// Returns integers, decimals, values of either sign, or few distinct values, with a spread that the sums of squares of
/// the older program resolve.
fn random_set(rng: &mut ChaCha8Rng, kind: usize, odd: bool) -> Vec<String> {
    let (centre, spread): (f64, f64) = (rng.random_range(900.0..1100.0), rng.random_range(10.0..80.0));
    let size = if rng.random_bool(0.7) { rng.random_range(3..12) } else { rng.random_range(12..=120) };
    let size = if odd { size | 1 } else { size };
    let mut figure = || match kind {
        0 => format!("{}", (1000.0 * (centre + spread * rng.random_range(-1.0..1.0))).round()),
        1 => format!("{:.3}", centre + spread * rng.random_range(-1.0..1.0)),
        2 => format!("{:.2}", spread * rng.random_range(-1.0..1.0)),
        _ => format!("{}", rng.random_range(40..48)),
    };
    (0..size).map(|_| figure()).collect()
}

/// Runs our ministat: exit code, standard output, standard error.
fn ours(args: &[String], input: &[u8]) -> (u8, String, String) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let code = run(args.iter().map(OsString::from), 74, &mut &input[..], &mut stdout, &mut stderr);
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (code, text(stdout), text(stderr))
}

/// Removes what differs by design: the median of an even set (and its mark on the bar), which is the upper middle value
/// in the older version, and the second figure of the percent line, for which the older version takes the mean of the
/// reference as exact.
fn comparable(text: &str, even: bool) -> Vec<String> {
    let line = |line: &str| {
        let percent_error = line.starts_with('\t') && line.matches('%').count() == 2;
        let bar = line.starts_with('|') && line.contains(['A', 'M', '_']);
        let vitals =
            line.split_whitespace().count() == 7 && line.contains(' ') && !line.starts_with([' ', '|', '\t']);
        match line {
            _ if percent_error => line.split(" +/- ").next().unwrap_or_default().to_owned(),
            _ if bar && even => String::new(),
            _ if vitals && even => line
                .split_whitespace()
                .enumerate()
                .filter(|(i, _)| *i != 4)
                .map(|(_, w)| format!("{w} "))
                .collect(),
            _ => line.to_owned(),
        }
    };
    text.lines().map(line).collect()
}

#[test]
fn agrees_with_the_reference_program_on_random_sets() {
    let Some(program) = reference_program() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut rng = ChaCha8Rng::seed_from_u64(20150715);
    for trial in 0..300 {
        let call = Trial::random(&mut rng);
        let args: Vec<String> = call.options.iter().cloned().chain(call.write(folder.path())).collect();
        let output = Command::new(&program).args(&args).output().expect("the reference program runs");
        let (code, text, complaint) = ours(&args, b"");
        assert_eq!((code, complaint.as_str()), (0, ""), "trial {trial}: {args:?}");
        let even = call.sets.iter().any(|set| set.len() % 2 == 0);
        let theirs = String::from_utf8(output.stdout).expect("text");
        assert_eq!(
            comparable(&text, even),
            comparable(&theirs, even),
            "trial {trial}: {args:?} {:?}",
            call.sets
        );
    }
}

/// Covers all degrees of freedom of the table at every level. The printed error is t times a value that other lines
/// determine, so a wrong entry of the table is found.
#[test]
fn agrees_with_the_reference_program_on_every_critical_value() {
    let Some(program) = reference_program() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |size: usize, lowest: usize| {
        let path = folder.path().join(format!("{size}-from-{lowest}"));
        let lines: String = (0..size).map(|index| format!("{}\n", lowest + index % 7)).collect();
        std::fs::write(&path, lines).expect("written");
        path.to_string_lossy().into_owned()
    };
    // Sets of 3, 4, … 104 values against a set of 3: 4 to 105 degrees of freedom, six per call.
    for smallest in (3..105).step_by(6) {
        let mut files = vec![file(3, 100)];
        files.extend((smallest..smallest + 6).map(|size| file(size, 900)));
        for level in ["80", "90", "95", "98", "99", "99.5"] {
            let args: Vec<String> =
                ["-A", "-c", level].map(str::to_owned).into_iter().chain(files.clone()).collect();
            let output = Command::new(&program).args(&args).output().expect("the reference program runs");
            let (_, text, _) = ours(&args, b"");
            let theirs = String::from_utf8(output.stdout).expect("text");
            assert_eq!(comparable(&text, true), comparable(&theirs, true), "{args:?}");
            assert_eq!(text.matches("\nDifference at").count(), 6, "{text}");
        }
    }
}

/// The example sets of ministat's manual page.
const IGUANA: &str = "50\n200\n150\n400\n750\n400\n150\n";
const CHAMELEON: &str = "150\n400\n720\n500\n930\n";

/// A folder with files of these names and texts.
fn folder_of(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

fn ours_in(folder: &tempfile::TempDir, args: &[&str], input: &str) -> (u8, String, String) {
    let path = |arg: &&str| {
        let file = folder.path().join(arg);
        if !arg.is_empty() && file.is_file() {
            file.to_string_lossy().into_owned()
        } else {
            (*arg).to_owned()
        }
    };
    let args: Vec<String> = args.iter().map(path).collect();
    let (code, stdout, stderr) = ours(&args, input.as_bytes());
    let plain = |text: String| text.replace(&format!("{}/", folder.path().display()), "");
    (code, plain(stdout), plain(stderr))
}

#[test]
fn the_example_of_the_manual_page_is_printed() {
    let folder = folder_of(&[("iguana", IGUANA), ("chameleon", CHAMELEON)]);
    let (code, text, _) = ours_in(&folder, &["-s", "-w", "60", "-c80", "iguana", "chameleon"], "");
    assert_eq!(code, 0);
    assert_eq!(
        text,
        "\
x iguana
+ chameleon
+------------------------------------------------------------+
|x      *  x            *      +              + x           +|
| |________M______A_______________|                          |
|             |________________M__A___________________|      |
+------------------------------------------------------------+
    N           Min           Max        Median           Avg        Stddev
x   7            50           750           200           300     238.04761
+   5           150           930           500           540     299.08193
Difference at 80.0% confidence
\t240 +/- 212.215
\t80% +/- 102.3%
\t(Student's t, pooled s = 264.159)
"
    );
}

#[test]
fn standard_input_is_a_set() {
    let folder = folder_of(&[("iguana", IGUANA)]);
    let (_, nameless, _) = ours_in(&folder, &["-n"], IGUANA);
    assert!(nameless.starts_with("x <stdin>\n    N "), "{nameless}");
    let (_, named, _) = ours_in(&folder, &["-n", "iguana", "-"], CHAMELEON);
    assert!(named.starts_with("x iguana\n+ -\n    N "), "{named}");
    assert_eq!(named.lines().count(), 5);
}

#[test]
fn quiet_only_removes_labels_and_header() {
    let folder = folder_of(&[("iguana", IGUANA), ("chameleon", CHAMELEON)]);
    let (_, full, _) = ours_in(&folder, &["-s", "iguana", "chameleon"], "");
    let (_, quiet, _) = ours_in(&folder, &["-sq", "iguana", "chameleon"], "");
    let kept = |line: &&str| !["x iguana", "+ chameleon"].contains(line) && !line.starts_with("    N ");
    assert_eq!(full.lines().filter(kept).collect::<Vec<_>>(), quiet.lines().collect::<Vec<_>>());
    let (_, median, _) = ours_in(&folder, &["-nq", "iguana"], "");
    assert_eq!(median, "x   7            50           750           200           300     238.04761\n");
}

/// The lines are those of Debian's ministat: a mean starts at +0, and the two zeros are equal, so that the minimum is the
/// first of them and the maximum the last.
#[test]
fn zeros_of_either_sign_are_printed_as_by_the_reference_program() {
    for (figures, line) in [
        ("-0\n-0\n-0\n", "x   3            -0            -0            -0             0             0\n"),
        ("0\n0\n0\n0\n-0\n", "x   5             0            -0             0             0             0\n"),
        ("-0\n0\n-1\n", "x   3            -1             0            -0   -0.33333333    0.57735027\n"),
    ] {
        let folder = folder_of(&[("zeros", figures)]);
        let (code, text, _) = ours_in(&folder, &["-nq", "zeros"], "");
        assert_eq!((code, text.as_str()), (0, line), "{figures:?}");
    }
}

#[test]
fn equal_values_have_no_plot() {
    let folder = folder_of(&[("flat", "5\n5\n5\n")]);
    let (code, text, _) = ours_in(&folder, &["flat", "flat"], "");
    assert_eq!(code, 0);
    assert!(text.contains("\n[no plot, span is zero width]\n"), "{text}");
    assert!(text.ends_with("No difference proven at 95.0% confidence\n"), "{text}");
}

#[test]
fn wrong_options_are_explained() {
    let folder = folder_of(&[("iguana", IGUANA)]);
    for (args, complaint) in [
        (&["-x"][..], "ministat: illegal option -- x\nUnknown option"),
        (&["-sw"], "ministat: option requires an argument -- w\nUnknown option"),
        (&["-C", "0"], "Column number should be positive."),
        (&["-C", "two"], "Invalid column number."),
        (&["-c", "high"], "Not a floating point number"),
        (&["-c", "97"], "No support for confidence level"),
        (&["-d", ""], "Can't use empty delimiter string"),
        (&["-w", "wide"], "Invalid width, not a number."),
        (&["-w", "-5"], "Unable to move beyond left margin."),
        (&["iguana"; 8], "Too many datasets."),
    ] {
        let (code, text, message) = ours_in(&folder, args, IGUANA);
        assert_eq!((code, text.as_str()), (2, ""), "{args:?}");
        assert!(message.starts_with(&format!("{complaint}\nUsage: ministat [")), "{args:?}: {message}");
    }
}

#[test]
fn wrong_data_is_explained() {
    let folder = folder_of(&[
        ("iguana", IGUANA),
        ("few", "1\n2\n"),
        ("bad", "1\n2\n3 x\n4x\n"),
        ("vast", "1e300\n-1e300\n0\n"),
    ]);
    for (args, complaint) in [
        (&["iguana", "few"][..], "Dataset few must contain at least 3 data points\n"),
        (&["iguana", "bad"], "ministat: Invalid data \"4x\" on line 4 in bad\n"),
        (&["bad", "none"], "ministat: Cannot open none: No such file or directory\n"),
        (&["-", "-"], "Dataset - must contain at least 3 data points\n"),
        (&["-w", "1", "iguana"], "The plot cannot be 1 columns wide: give a width from 2 to 65535\n"),
        (
            &["vast"],
            "Dataset vast has values that are not finite, or too large to square: use a larger unit\n",
        ),
    ] {
        assert_eq!(ours_in(&folder, args, IGUANA), (2, String::new(), complaint.to_owned()), "{args:?}");
    }
}

#[test]
fn options_end_at_the_first_file_or_at_two_dashes() {
    let folder = folder_of(&[("iguana", IGUANA)]);
    for args in [&["-n", "iguana", "-s"], &["-n", "--", "-s"]] {
        let (code, _, message) = ours_in(&folder, args, "");
        assert_eq!(
            (code, message.as_str()),
            (2, "ministat: Cannot open -s: No such file or directory\n"),
            "{args:?}"
        );
    }
}

#[test]
fn sets_that_cannot_be_printed_are_refused() {
    let set = |values: &[f64]| Set { label: "a".to_owned(), values: values.to_vec() };
    let refused = |sets: &[Set]| render(sets, &Style::default()).expect_err("not to be rendered");
    assert_eq!(refused(&[]), MinistatError::NoSets);
    assert_eq!(refused(&vec![set(&[1.0, 2.0, 3.0]); 8]), MinistatError::TooManySets);
    let label = || "a".to_owned();
    assert_eq!(refused(&[set(&[1.0, 2.0])]), MinistatError::TooFewValues { label: label() });
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(refused(&[set(&[1.0, odd, 3.0])]), MinistatError::NotFinite { label: label() }, "{odd}");
    }
}

/// Generates values of every size, extreme ones often.
fn figure() -> impl Strategy<Value = f64> {
    let edges = prop::sample::select(vec![
        0.0,
        -0.0,
        1.0,
        f64::MIN_POSITIVE,
        5e-324,
        f64::MAX,
        f64::MIN,
        1e16,
        1e16 + 2.0,
    ]);
    prop_oneof![edges, -1e3..1e3, prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO]
}

proptest! {
    #[test]
    fn any_finite_values_are_printed_or_refused(
        data in prop::collection::vec(prop::collection::vec(figure(), 3..20), 1..8),
        width in 0_usize..100,
        level in 0_usize..6,
        separate_bars: bool,
    ) {
        let label = || "a".to_owned();
        let sets: Vec<Set> = data.into_iter().map(|values| Set { label: label(), values }).collect();
        let confidence = Confidence::ALL[level];
        let style = Style { width: Some(width), separate_bars, confidence, ..Style::default() };
        match render(&sets, &style) {
            Ok(text) => {
                let plot: Vec<usize> = text.lines().filter(|l| l.starts_with('|')).map(str::len).collect();
                prop_assert!(plot.iter().all(|&columns| columns == width + 2), "{text}");
            }
            Err(error) => {
                let expected = [MinistatError::Width { width }, MinistatError::NotFinite { label: label() }];
                prop_assert!(expected.contains(&error), "{error}");
            }
        }
    }

    #[test]
    fn any_bytes_are_parsed_or_refused(
        text in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"0123456789.,e-# \t\n".to_vec())], 0..200),
        column in 0_usize..5,
    ) {
        match parse(&text, column, b" \t") {
            Ok(values) => prop_assert!(values.iter().all(|value| value.is_finite())),
            Err(error) => prop_assert!((1..=text.split(|&byte| byte == b'\n').count()).contains(&error.line)),
        }
    }
}
