use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::bars::{Bar, Chart, Group};
use super::curves::{Curve, Curves};
use super::distributions::{Distribution, Distributions};
use super::frame::CurveTexts;
use super::page::Mark;
use super::scene::{Align, Edges, HEIGHT, WIDTH};
use super::scene::{Scene, Shape};

fn bar(median: f64) -> Result<Bar, &'static str> {
    Ok(Bar { min: median * 0.96, median, max: median * 1.02, extension: None })
}

/// A chart of `labels`, with as many families as each group has bars.
fn chart(labels: &[&str], families: &[&str]) -> Chart {
    let group = |(index, label): (usize, &&str)| Group {
        label: (*label).into(),
        bars: (0..families.len())
            .map(|family| bar(22e6 + 1.1e6 * index as f64 - 2e6 * family as f64))
            .collect(),
    };
    Chart {
        title: "Impact of D27401 and D27412 on forwarding performance".into(),
        y_label: "Packets per second forwarded".into(),
        y_detail: "minimum, median, maximum of 5 runs".into(),
        notes: "5000 flows of smallest UDP packets, full view of 712793 and 104034 routes, LRO and TSO disabled, \
                harvest.mask=351, ICMP redirect disabled, Intel Xeon E5-2697Av4 (16 cores, 32 threads), Chelsio \
                T580-LP-CR, Traffic load at 42.49Mpps"
            .into(),
        families: families.iter().map(|family| (*family).into()).collect(),
        extension: None,
        groups: labels.iter().enumerate().map(group).collect(),
        imix_axis: true,
    }
}

const LONG: [&str; 8] = [
    "r368766",
    "r368766 with D27401 (diff 80909)",
    "r368766 with D27401 and D27412",
    "bsearch4 & radix6_lockless <patched>",
    "dpdk_lpm4_with_a_name_without_any_space_or_hyphen",
    "poptrie",
    "dxr, three kilobytes of chunks a range",
    "DIR-24-8 with AVX-512 gather and two bytes a next hop",
];
const LOOKUPS: [&str; 12] = [
    "linear",
    "radix",
    "radix_lockless",
    "bsearch4",
    "dpdk_lpm4",
    "dpdk_lpm6",
    "dxr",
    "poptrie",
    "sail",
    "tree bitmap",
    "range vector",
    "own",
];

fn cases() -> Vec<(&'static str, Chart)> {
    let both = ["IPv4", "IPv6"];
    let mut gap = chart(&LONG[..3], &both);
    gap.groups[1].bars[0] = Err("no scale: the baseline has no rate");
    let mut nothing = chart(&LONG[..4], &both);
    nothing.groups.iter_mut().for_each(|group| group.bars.fill(Err("no valid run")));
    let mut lookups = chart(&LOOKUPS, &["IPv4"]);
    lookups.imix_axis = false;
    lookups.groups[0].bars[0] = bar(12_345.0);
    let mut extended = chart(&LONG[..3], &both);
    extended.extension = Some("pale: at most, without the bed".into());
    let bars = extended.groups.iter_mut().flat_map(|group| &mut group.bars).flatten();
    bars.zip([1.03, 1.4, 9.0, f64::INFINITY, 1.0, 0.9]).for_each(|(bar, times)| {
        bar.extension = Some(bar.median * times);
    });
    let thirty: Vec<&str> = LONG.iter().chain(&LOOKUPS).chain(&LONG).copied().collect();
    vec![
        ("twenty-eight", chart(&thirty, &both)),
        ("extended", extended),
        ("one", chart(&LONG[..1], &["IPv4"])),
        ("two", chart(&LONG[..2], &both)),
        ("three", gap),
        ("nothing", nothing),
        ("seven", chart(&LONG[..7], &both)),
        ("eight", chart(&LONG, &["IPv4", "IPv6", "both"])),
        ("lookups", lookups),
        ("many", chart(&[LOOKUPS, LOOKUPS].concat(), &both)),
    ]
}

fn overlap(one: Edges, other: Edges) -> bool {
    one.0 < other.2 && other.0 < one.2 && one.1 < other.3 && other.1 < one.3
}

/// Checks that every text is inside the canvas and that no two overlap.
fn assert_apart(name: &str, chart: &Chart) {
    assert_texts_apart(name, &chart.scene().expect("a scene"));
}

pub(super) fn assert_texts_apart(name: &str, scene: &Scene) {
    let boxes: Vec<(Edges, &str)> =
        scene.texts.iter().map(|text| (text.edges().expect("a width"), text.text.as_str())).collect();
    for (index, (edges, text)) in boxes.iter().enumerate() {
        let (left, top, right, bottom) = *edges;
        assert!(
            left >= 0 && top >= 0 && right <= scene.width && bottom <= scene.height,
            "{name}: {text} at {edges:?}"
        );
        for (other, beside) in &boxes[index + 1..] {
            assert!(!overlap(*edges, *other), "{name}: \"{text}\" {edges:?} touches \"{beside}\" {other:?}");
        }
    }
}

#[test]
fn every_text_is_inside_the_canvas_and_apart_from_the_others() {
    for (name, chart) in cases() {
        assert_apart(name, &chart);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn any_texts_and_figures_have_a_layout(
        title in "[ -~]{1,300}",
        notes in "[ -~]{0,900}",
        labels in vec("[!-~][ -~]{0,60}", 1..25),
        families in vec("[!-~][ -~]{0,50}", 1..4),
        medians in vec(option::of(0.0f64..1e12), 75),
        imix_axis: bool,
        extension in option::of("[ -~]{0,60}"),
    ) {
        let mut medians = medians.into_iter();
        let mut bars = || (0..families.len()).map(|_| medians.next().flatten().ok_or("rate of zero").and_then(bar)).collect();
        let groups = labels.into_iter().map(|label| Group { label, bars: bars() }).collect();
        let (y_label, y_detail) = ("Lookups per second".into(), "minimum, median, maximum of 5 runs".into());
        let chart = Chart { title, y_label, y_detail, notes, families, extension, groups, imix_axis };
        assert_apart("random", &chart);
    }
}

#[test]
fn the_svg_is_well_formed_and_contains_every_text() {
    for (name, chart) in cases() {
        let svg = chart.svg().unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let texts = document.descendants().filter(|node| node.has_tag_name("text"));
        let words: String = texts.filter_map(|node| node.text()).flat_map(str::split_whitespace).collect();
        let labels = chart.groups.iter().map(|group| &group.label);
        for text in labels.chain([&chart.title, &chart.y_label, &chart.y_detail]).chain(&chart.families[1..])
        {
            let joined: String = text.split_whitespace().collect();
            assert!(words.contains(&joined), "{name}: {text}");
        }
    }
}

/// The picture has its usual size if the texts fit, and is larger if they do not.
#[test]
fn the_picture_grows_with_its_texts() {
    let size = |chart: &Chart| chart.scene().map(|scene| (scene.width, scene.height)).unwrap();
    let small = chart(&LONG[..3], &["IPv4", "IPv6"]);
    assert_eq!(size(&small), (WIDTH, HEIGHT));
    let notes = small.notes.repeat(20);
    assert!(size(&Chart { notes, ..small }).1 > HEIGHT);
    let many: Vec<String> = (0..30).map(|n| format!("{n}: {}", LONG[7].repeat(3))).collect();
    let many = chart(&many.iter().map(String::as_str).collect::<Vec<_>>(), &["IPv4", "IPv6"]);
    assert!(size(&many).0 > WIDTH);
    assert_apart("thirty", &many);
    let scene = many.scene().unwrap();
    let figures = scene.texts.iter().filter(|text| text.text.ends_with('M') && text.align == Align::Middle);
    assert!(figures.count() >= 60, "every bar has its figure");
    assert!(scene.texts.iter().all(|text| !text.text.contains('…')));
}

/// The other graphs grow, too, and their marks and labels are apart.
#[test]
fn curves_and_distributions_grow_with_their_texts() {
    let texts = CurveTexts {
        title: "A title".repeat(30),
        y_label: "Packets per second forwarded".into(),
        x_label: "Bytes".into(),
        notes: "conditions and more of them ".repeat(60),
    };
    let names: Vec<String> = (0..40).map(|n| format!("{n}: {}", LONG[7])).collect();
    let points = |at: u64| (at, bar(1e6 * at as f64).expect("a bar"));
    let curve = |name: &String| Curve { name: name.clone(), points: [60, 62, 64, 1514].map(points).into() };
    let curves = Curves { texts: texts.clone(), curves: names.iter().map(curve).collect() };
    let points = vec![(0.0, 0.002), (0.999, 3e6)];
    let one =
        |name: &String| Distribution { name: name.clone(), points: points.clone(), reference: Vec::new() };
    let shares = Distributions { texts, curves: names.iter().map(one).collect() };
    for (name, scene) in [("curves", curves.scene()), ("distributions", shares.scene())] {
        let scene = scene.expect("a scene");
        assert!(scene.height > HEIGHT, "{name}");
        assert_texts_apart(name, &scene);
    }
}

/// More families than colours: the others are hollow, in the legend and as bars.
#[test]
fn fourteen_families_can_be_told_apart() {
    let titles: Vec<String> = (0..14).map(|family| format!("family {family}")).collect();
    let mut chart = chart(&LONG[..2], &titles.iter().map(String::as_str).collect::<Vec<_>>());
    chart.groups.iter_mut().for_each(|group| group.bars.fill(bar(5e6)));
    let scene = chart.scene().expect("a scene");
    let boxes = scene.shapes.iter().filter(|shape| matches!(shape, Shape::Box { .. })).count();
    assert_eq!(boxes, (14 + 6) * 3, "a legend and two groups, six holes in each");
    let marks: Vec<Mark> = Mark::all().take(14).collect();
    assert!(marks.iter().enumerate().all(|(at, mark)| !marks[..at].contains(mark)));
}

#[test]
fn a_screen_reader_has_a_title_and_a_description() {
    let mut chart = chart(&LONG[..1], &["IPv4"]);
    chart.title = "a < b & c".into();
    let svg = chart.svg().expect("a drawing");
    let document = roxmltree::Document::parse(&svg).expect("a document");
    let text = |tag| document.descendants().find(|node| node.has_tag_name(tag)).and_then(|node| node.text());
    assert_eq!((document.root_element().attribute("role"), text("title")), (Some("img"), Some("a < b & c")));
    assert!(text("desc").is_some_and(|notes| notes.contains("5000 flows")));
}

#[test]
fn both_drawings_are_reproducible() {
    let chart = chart(&LONG[..2], &["IPv4"]);
    assert_eq!(chart.svg().unwrap(), chart.svg().unwrap());
    assert_eq!(chart.png().unwrap(), chart.png().unwrap());
}

/// The right axis shows throughputs, and an extension is none.
#[test]
fn the_right_axis_ends_above_the_bars() {
    let (_, extended) = cases().into_iter().find(|(name, _)| *name == "extended").unwrap();
    let scene = extended.scene().unwrap();
    let marks = scene.texts.iter().filter(|text| text.text.ends_with("Gb/s")).count();
    let plain = chart(&LONG[..3], &["IPv4", "IPv6"]).scene().unwrap();
    let all = plain.texts.iter().filter(|text| text.text.ends_with("Gb/s")).count();
    let left = |scene: &Scene| {
        scene.texts.iter().filter(|text| text.text.ends_with('M') && text.align == Align::Right).count()
    };
    assert!(marks < left(&scene), "{marks}");
    assert!(all >= left(&plain) - 1, "{all}");
}
