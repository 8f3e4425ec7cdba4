//! Result directories: those of the shared data, and damaged ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use fullview_netbenches::{
    ExportSeries, Import, Reproduced, blocks, claims, export, parse, sentences, write,
};
use fullview_testnet::shared;
use proptest::prelude::*;

const FOLDERS: [&str; 6] = [
    "000-xeon16-t580-two-static-routes",
    "001-xeon8-t540-two-static-routes",
    "002-xeon16-t580-200-flows",
    "003-xeon16-t580-full-view-D27401",
    "003-xeon16-t580-full-view-D27401-D27412",
    "004-xeon8-t540-D4306",
];

fn import(name: &str) -> Option<Import> {
    Some(Import::read(&shared::data(&format!("netbenches/{name}"))?).unwrap())
}

#[test]
fn every_shared_folder_is_imported_with_its_blocks_byte_for_byte() {
    for (name, series, blocks) in
        FOLDERS.into_iter().zip([10, 10, 4, 4, 2, 6]).zip([2, 2, 2, 2, 2, 3]).map(|((a, b), c)| (a, b, c))
    {
        let Some(import) = import(name) else { return };
        assert_eq!((import.series.len(), import.blocks.len()), (series, blocks), "{name}");
        let exact = import.blocks.iter().filter(|block| block.outcome == Reproduced::Exact).count();
        let expected = if name.starts_with("004") { 0 } else { blocks };
        assert_eq!(
            exact,
            expected,
            "{name}: {:?}",
            import.blocks.iter().map(|b| &b.outcome).collect::<Vec<_>>()
        );
    }
}

/// Its tabs became blanks, and its first block was published without ministat's last line.
#[test]
fn the_blocks_of_an_older_ministat_come_out_too() {
    let Some(import) = import(FOLDERS[5]) else { return };
    let outcomes: Vec<&Reproduced> = import.blocks.iter().map(|block| &block.outcome).collect();
    let without = Reproduced::WithoutLines("No difference proven at 95.0% confidence".into());
    assert_eq!(outcomes, [&without, &Reproduced::TabsAsBlanks, &Reproduced::TabsAsBlanks]);
    let renamed = import.series.iter().find(|series| series.name == "296935D4304.fastforwarding").unwrap();
    assert_eq!(renamed.column.as_deref(), Some("296935D4306.forwarding"));
    assert!(renamed.medians.by_name && renamed.values.len() == 10, "{renamed:?}");
    assert_eq!(import.times.len(), 12);
}

#[test]
fn the_prose_is_compared_with_its_blocks() {
    let (Some(equal), Some(signs)) = (import(FOLDERS[2]), import(FOLDERS[5])) else { return };
    let contradicted: Vec<bool> = equal.claims.iter().map(|claim| claim.contradiction.is_some()).collect();
    assert_eq!(contradicted, [true, false], "{:?}", equal.claims);
    assert_eq!(signs.claims.len(), 3);
    assert!(signs.claims.iter().all(|claim| claim.contradiction.is_none()), "{:?}", signs.claims);
}

/// Its generator and its wire reached 14.88 Mpps, and so did every router.
#[test]
fn a_generator_that_was_the_limit_is_no_comparison_of_routers() {
    let (Some(limited), Some(free)) = (import(FOLDERS[1]), import(FOLDERS[0])) else { return };
    assert!(limited.comparisons.iter().all(|one| one.generator_limited && one.verdict.is_none()));
    assert!(limited.series.iter().all(|series| series.generator_limited == 5), "{:?}", limited.warnings);
    assert!(free.comparisons.iter().all(|one| !one.generator_limited && one.verdict.is_some()));
    assert!(free.series.iter().all(|series| series.offered.len() == 5 && series.generator_limited == 0));
}

/// The data of its two graphs have changed places.
#[test]
fn graphs_that_show_another_series_are_found() {
    let (Some(swapped), Some(right)) = (import(FOLDERS[1]), import(FOLDERS[0])) else { return };
    let graphs = |import: &Import| import.warnings.iter().filter(|line| line.contains(".data, line")).count();
    assert_eq!((graphs(&swapped), graphs(&right)), (10, 0), "{:?}", swapped.warnings);
}

#[test]
fn columns_without_an_ending_have_a_dotted_name_and_several_lines() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    put("296935.forwarding", "10\n11\n");
    put("hostname", "10\n11\n");
    put("version.debian", "12.11\n");
    put("one.pps", "10\n");
    put("gnuplot.data", "296935.forwarding 10.5 10 11\none 10 10 10\ntwo 7 7 7\n");
    let import = Import::read(folder.path()).unwrap();
    let names: Vec<&str> = import.series.iter().map(|series| &*series.name).collect();
    assert_eq!(names, ["296935.forwarding", "one"]);
    assert!(import.skipped[0].contains("version.debian"), "{:?}", import.skipped);
    let wrong: Vec<&String> = import.warnings.iter().filter(|line| line.contains(".data")).collect();
    assert_eq!(wrong, ["gnuplot.data, line 3: no series has the figures of \"two\""]);
}

#[test]
fn call_graphs_that_are_cut_off_are_named() {
    let Some(import) = import(FOLDERS[1]) else { return };
    let cut = import
        .skipped
        .iter()
        .filter(|line| line.contains(".graph: line ") && line.contains("cut off"))
        .count();
    assert_eq!((cut, import.graphs.len()), (10, 0), "{:?}", import.skipped);
}

const BLOCK: &str = "About -1 % slower:\n```\nx a\n+ b\n+--------+\n|x +|\n+--------+\n    N           Min           Max        Median           Avg        Stddev\nx   3 98 102 100 100 2\n+   3 99.6 103.6 101.6 101.6 2\nNo difference proven at 95.0% confidence\n```\n";

#[test]
fn a_sign_that_contradicts_its_block_is_found() {
    let found = |text: &str| claims(&blocks(text)[0]).first().map(|claim| claim.contradiction.is_some());
    assert_eq!(found(BLOCK), Some(true));
    assert_eq!(claims(&blocks(&format!("\n{BLOCK}"))[0])[0].line, 2, "the line of the prose");
    assert_eq!(found(&BLOCK.replace("-1 %", "+1.6%")), Some(false));
    assert_eq!(found(&BLOCK.replace("-1 %", "1 %")), None, "without a sign nothing is claimed");
    assert_eq!(found(&BLOCK.replace("-1 %", "-1 % to -2 %")), None);
    for range in ["1-2%", "within +/-5%"] {
        assert_eq!(found(&BLOCK.replace("-1 %", range)), None, "{range} is no claim of a sign");
    }
    assert_eq!(found(&BLOCK.replace("-1 %", "less (-1 %)")), Some(true));
}

#[test]
fn the_conclusion_of_a_block_is_no_claim_about_the_next_one() {
    let slower = BLOCK.replace("99.6 103.6 101.6 101.6", "96.4 100.4 98.4 98.4");
    let readme = format!("{BLOCK}\n=> +1.6%\n\n{}\n=> -1.6%\n", slower.replace("About -1 % slower:\n", ""));
    let claims: Vec<bool> =
        blocks(&readme).iter().flat_map(claims).map(|claim| claim.contradiction.is_some()).collect();
    assert_eq!(claims, [true, false, false]);
}

fn log(rates: &[u32], old: bool) -> String {
    let rest =
        if old { "pkts in 1000000 usec)" } else { "pkts 9 bps in 1000000 usec) 2.4 avg_batch 9 min_space" };
    let head = "999.000001 main [1] interface is ix0\n".repeat(15);
    let lines: String =
        rates.iter().map(|rate| format!("000.5 main_thread [9] {rate} pps ({rate} {rest}\n")).collect();
    head + &lines + &"Terminated\n".repeat(10)
}

#[test]
fn damaged_files_are_named_and_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let raw = folder.path().join("RAW");
    fs::create_dir(&raw).unwrap();
    let put = |name: &str, text: &str| fs::write(raw.join(name), text).unwrap();
    put("bench.off.inet4.1.receiver", &log(&[10, 30, 0, 20], true));
    put("bench.off.inet4.2.receiver", &log(&[11, 31, 21], false));
    put("bench.off.inet4.3.receiver", log(&[1; 9], true).trim_end());
    put("bench.off.inet4.4.receiver", "");
    put("bench.off.inet4.5.receiver", "<html></html>\n");
    put("bench.off.inet4.6.receiver", "001.5 main [1] interface is ix0\n");
    put("bench.off.inet4.info", "IMAGE=\"\"\nCFG=\"off\"\nPKTGEN=\"inet4\"\n");
    put(
        "bench.vpn.1.sender",
        "  - Offering load = 63 Mb/s\nEstimated Equilibrium Ethernet throughput= 60 Mb/s (maximum value seen: 61 Mb/s)\n",
    );
    put("bench.vpn.2.sender", "  - Offering load = 63 Mb/s\n");
    fs::write(raw.join("bench.off.inet4.7.receiver"), b"text\n\xff\xfe").unwrap();
    put("bench.off.inet4.01.receiver", &log(&[10, 30, 0, 20], true));
    let import = Import::read(folder.path()).unwrap();
    let series: Vec<_> =
        import.series.iter().map(|s| (&*s.variant, &*s.family, &*s.unit, s.values.clone())).collect();
    assert_eq!(series, [("off", "inet4", "pps", vec![20.0, 21.0]), ("", "vpn", "Mb/s", vec![60.0])]);
    let named = |file: &str, words: &str| {
        let line = import.skipped.iter().find(|line| line.contains(file)).unwrap_or_else(|| panic!("{file}"));
        assert!(line.contains(words), "{line}");
    };
    named("inet4.3.receiver", "line 34: the file is cut off");
    named("inet4.4.receiver", "empty");
    named("inet4.5.receiver", "not a log of pkt-gen");
    named("inet4.6.receiver", "no rate remains");
    named("inet4.7.receiver", "line 2: this is not text");
    named("inet4.1.receiver", "the same number of the run");
    named("vpn.2.sender", "cut off");
    assert_eq!(import.skipped.len(), 7);
    let out = folder.path().join("out");
    write(&import, &out, false).unwrap();
    assert!(fs::read_to_string(out.join("report.md")).unwrap().contains("## Skipped files"));
    assert!(write(&import, &out, false).is_err() && write(&import, &out, true).is_ok());
}

#[test]
fn routers_are_judged_unless_the_generator_limits_all_their_runs() {
    let folder = tempfile::tempdir().unwrap();
    let raw = folder.path().join("RAW");
    fs::create_dir(&raw).unwrap();
    let sent = 14_880_000;
    let answer = |limited: u32| {
        for (variant, rate) in [("one", 10_000_000), ("two", 12_000_000)] {
            for run in 1..=5 {
                let name = |side: &str| raw.join(format!("bench.{variant}.inet4.{run}.{side}"));
                let received = if run <= limited { sent } else { rate + run };
                fs::write(name("receiver"), log(&[received; 3], true)).unwrap();
                fs::write(name("sender"), log(&[sent; 3], true)).unwrap();
            }
        }
        sentences(&Import::read(folder.path()).unwrap()).remove(0)
    };
    assert!(
        answer(5)
            .ends_with("not judged: both carried all that the generator sent in all runs with a log of it")
    );
    let said = answer(0);
    assert!(
        said.starts_with("inet4: two is better against one, +20.00 %") && !said.contains("sent"),
        "{said}"
    );
    let said = answer(1);
    assert!(said.starts_with("inet4: two is ") && said.contains("against one, +"), "{said}");
    assert!(
        said.ends_with(
            "; 2 of 10 runs with a log of the generator carried all that was sent, so that the routers may differ by more"
        ),
        "{said}"
    );
    for run in 4..=5 {
        fs::remove_file(raw.join(format!("bench.two.inet4.{run}.sender"))).unwrap();
    }
    let said = sentences(&Import::read(folder.path()).unwrap()).remove(0);
    assert!(said.contains("; 2 of 8 runs with a log"), "{said}");
}

#[test]
fn a_router_that_stops_forwarding_in_its_runs_is_not_judged_by_the_seconds_before() {
    let folder = tempfile::tempdir().unwrap();
    let raw = folder.path().join("RAW");
    fs::create_dir(&raw).unwrap();
    let put = |name: String, rates: &[u32]| fs::write(raw.join(name), log(rates, true)).unwrap();
    for run in 1..=5 {
        put(format!("bench.good.inet4.{run}.receiver"), &[10_000_000 + run; 60]);
        put(format!("bench.hangs.inet4.{run}.receiver"), &[vec![11_000_000 + run; 12], vec![0; 48]].concat());
    }
    put("bench.dead.inet4.1.receiver".into(), &[0; 60]);
    let import = Import::read(folder.path()).unwrap();
    let hangs = &import.series[1];
    assert_eq!(
        (hangs.values[0], hangs.silent.as_slice(), hangs.drifts[0]),
        (11_000_001.0, &[48; 5][..], -1.0)
    );
    let [compared] = &import.comparisons[..] else { panic!("{:?}", import.comparisons) };
    assert!(compared.verdict.is_none() && compared.runs_needed.is_none(), "{compared:?}");
    let answer = &sentences(&import)[0];
    assert!(answer.ends_with("not judged: no packet came in some seconds of 5 runs of hangs"), "{answer}");
    let warned = |words: &str| {
        import.warnings.iter().any(|line| line.starts_with("hangs.inet4") && line.contains(words))
    };
    assert!(warned("5 of 5 runs have seconds without packets (240 in all)"), "{:?}", import.warnings);
    assert!(warned("5 of 5 runs drift by more than 1 %"), "{:?}", import.warnings);
    assert!(import.skipped[0].contains("no packet came in any second"), "{:?}", import.skipped);
}

#[test]
fn published_medians_are_compared_by_run_also_beside_a_log_that_was_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let raw = folder.path().join("RAW");
    fs::create_dir(&raw).unwrap();
    let put = |name: &str, text: &str| fs::write(raw.join(name), text).unwrap();
    for run in [1, 3, 4] {
        put(&format!("bench.off.inet4.{run}.receiver"), &log(&[10 * run; 3], true));
    }
    put("bench.off.inet4.2.receiver", "");
    let medians_of = |column: &str| {
        fs::write(folder.path().join("off.inet4.pps"), column).unwrap();
        Import::read(folder.path()).unwrap()
    };
    let import = medians_of("10\n20\n30\n40\n");
    let medians = &import.series[0].medians;
    assert!(medians.compared == 3 && medians.differing.is_empty(), "{medians:?}");
    assert!(sentences(&import).iter().any(|line| line.starts_with("0 of 3 published")), "{import:?}");
    let other = medians_of("10\n30\n40\n");
    assert_eq!((other.series[0].medians.compared, other.series[0].medians.unequal), (0, Some([3, 4])));
    assert!(other.warnings.iter().any(|line| line.contains("cannot be compared")), "{:?}", other.warnings);
}

#[test]
fn values_without_a_logarithm_are_the_reason_that_is_given() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("one.inet4.pps"), "10\n11\n12\n").unwrap();
    let said = |values: &str| {
        fs::write(folder.path().join("two.inet4.pps"), values).unwrap();
        sentences(&Import::read(folder.path()).unwrap()).remove(0)
    };
    assert!(said("0\n11\n12\n").ends_with("not judged: the values of all runs must be above zero"));
    assert!(said("11\n").ends_with("not judged: too few runs"));
}

#[test]
fn a_title_is_the_first_line_that_has_one_or_the_name_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("one.inet4.pps"), "10\n").unwrap();
    let title = |path: &Path| Import::read(path).unwrap().title;
    assert_eq!(title(&folder.path().join(".")), folder.path().file_name().unwrap().to_str().unwrap());
    fs::write(folder.path().join("README.md"), "\n\n# The title:\n- a host\n").unwrap();
    assert_eq!(title(folder.path()), "The title");
    assert_eq!(Import::read(folder.path()).unwrap().conditions, ["a host"]);
}

/// ministat has seven symbols, and needs three values of each series.
#[test]
fn every_series_is_in_a_block_or_is_named() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for variant in 0..9 {
        fs::write(folder.path().join(format!("v{variant}.inet4.pps")), "10\n11\n12\n").unwrap();
    }
    fs::write(folder.path().join("w.inet4.pps"), "10\n").unwrap();
    let import = Import::read(folder.path()).unwrap();
    write(&import, out.path(), false).unwrap();
    let report = fs::read_to_string(out.path().join("report.md")).unwrap();
    let drawn = |series: usize| report.matches(&format!(" {}\n", import.series[series].name)).count();
    assert_eq!((drawn(0), drawn(7), drawn(8)), (2, 1, 1), "{report}");
    assert!(
        report.contains("w.inet4 is not in this block: it has 1 run, and at least 3 are needed."),
        "{report}"
    );
    assert!(fs::read_to_string(out.path().join("graph.svg")).unwrap().contains("maximum of 1 to 3 runs"));
}

#[test]
fn exported_files_do_not_replace_others() {
    let folder = tempfile::tempdir().unwrap();
    let series =
        |family: &str| ExportSeries { variant: "off".into(), family: family.into(), values: vec![1.0] };
    export(&[series("a.b")], folder.path(), false).unwrap();
    let again = export(&[series("a.b")], folder.path(), false).unwrap_err().to_string();
    assert!(again.contains("off.a-b.pps") && again.contains("--force"), "{again}");
    export(&[series("a.b")], folder.path(), true).unwrap();
    let equal = export(&[series("a.b"), series("a-b")], folder.path(), true).unwrap_err().to_string();
    assert!(equal.contains("off.a-b"), "{equal}");
}

#[test]
fn a_folder_without_series_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.pps"), "").unwrap();
    let error = Import::read(folder.path()).unwrap_err().to_string();
    assert!(
        error.contains("no series of runs") && error.contains("a.pps: line 1: the file is empty"),
        "{error}"
    );
}

#[test]
fn a_call_graph_has_its_hottest_functions() {
    let text = "@ cycles [30 samples]\n\n40.00%  [12]     lookup @ /boot/kernel/kernel\n 100.0%  [12]      input\n\n60.00%  [18]     idle @ /boot/kernel/kernel\n";
    let graph = parse::call_graph(text).unwrap();
    assert_eq!((graph.samples, &graph.hottest[..]), (30, &[("idle".into(), 18), ("lookup".into(), 12)][..]));
    assert!(parse::call_graph(text.trim_end()).unwrap_err().to_string().contains("line 6"));
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(text in "([\\x20-\\x7e]|main_thread \\[1\\] |[0-9]+ pps |\n|```\nx a\n|Stddev\n|-[0-9]% ?|@ e \\[3 samples\\]\n|Estimated Equilibrium Ethernet throughput=|=> ){0,60}") {
        let _ = (parse::pktgen(&text), parse::info(&text), parse::equilibrium(&text), parse::call_graph(&text));
        blocks(&text).iter().for_each(|block| drop((claims(block), block.labels(), block.width())));
    }
}
