use super::forest::{Forest, ForestGroup, ForestRow, RatioInterval};
use super::forest_rows::{INTERVAL, POINT, SHARE};
use super::page::EDGE;
use super::scene::{Align, Edges, Scene, Shape, WIDTH};
use super::verdict_mark::{self, BAND};
use crate::stats::Verdict::{self, Better, Equivalent, Undecided, Worse};

const LONG: &str =
    "DIR-24-8 with AVX-512 gather, two bytes a next hop, and_a_name_without_any_space, on a full view";

fn row(label: &str, [low, estimate, high]: [f64; 3], verdict: Verdict) -> ForestRow {
    ForestRow {
        label: label.into(),
        against: None,
        figures: [format!("{estimate:.3} ×"), format!("({low:.3}–{high:.3})")],
        whole: RatioInterval { estimate, low, high },
        share: None,
        verdict,
    }
}

fn forest(rows: Vec<ForestRow>) -> Forest {
    Forest {
        title: "Filters by their number of rules".into(),
        x_label: "Packets per second forwarded: multiple of no filter".into(),
        notes: "intervals hold together with a probability of 95 %".into(),
        margin: 0.01,
        margin_label: "within the margin of ±1 %".into(),
        share_label: "pale: the own share".into(),
        groups: vec![ForestGroup { title: "IPv4".into(), rows }],
    }
}

fn near_1() -> Forest {
    forest(vec![
        row("better", [1.02, 1.03, 1.04], Better),
        row("worse", [0.95, 0.96, 0.97], Worse),
        row("equivalent", [0.997, 1.001, 1.003], Equivalent),
        row("undecided", [0.98, 1.002, 1.024], Undecided),
    ])
}

fn far_and_near() -> Forest {
    let mut far = forest(vec![
        row("34 times", [33.1, 34.0, 35.2], Better),
        row("nearly the same", [0.988, 0.99, 0.993], Undecided),
    ]);
    far.groups.push(ForestGroup { title: "IPv6".into(), rows: near_1().groups.remove(0).rows });
    far
}

fn long() -> Forest {
    let rows = (0..40).map(|at| ForestRow {
        against: Some(format!("against {LONG}")),
        share: Some(RatioInterval { estimate: 1.5, low: 1.2, high: 1.9 }),
        ..row(LONG, [0.9, 1.0 + f64::from(at) / 100.0, 1.6], Undecided)
    });
    let mut long = forest(rows.collect());
    long.groups.push(ForestGroup { title: LONG.into(), ..long.groups[0].clone() });
    Forest { title: LONG.repeat(3), x_label: LONG.repeat(3), notes: LONG.repeat(9), ..long }
}

fn endless() -> Forest {
    forest(vec![
        row("few blocks", [0.0, 1.1, f64::INFINITY], Undecided),
        row("better", [1.02, 1.03, 1.04], Better),
        ForestRow {
            share: Some(RatioInterval { estimate: 9.0, low: 0.2, high: 1e9 }),
            ..row("share", [0.9, 1.2, 1.3], Undecided)
        },
    ])
}

fn cases() -> [(&'static str, Forest); 4] {
    [("near 1", near_1()), ("far and near", far_and_near()), ("long", long()), ("endless", endless())]
}

fn scene(forest: &Forest) -> Scene {
    forest.scene().expect("a scene")
}

/// The level lines of this width: both ends.
fn level(scene: &Scene, thick: i32) -> Vec<(i32, i32)> {
    let of_line = |shape: &Shape| match shape {
        Shape::Line { from, to, width, .. } if *width == thick && from.1 == to.1 => Some((from.0, to.0)),
        _ => None,
    };
    scene.shapes.iter().filter_map(of_line).collect()
}

fn triangles(scene: &Scene) -> Vec<[(i32, i32); 3]> {
    let corners = |shape: &Shape| match shape {
        Shape::Triangle { corners, .. } => Some(*corners),
        _ => None,
    };
    scene.shapes.iter().filter_map(corners).collect()
}

fn band(scene: &Scene) -> Option<Edges> {
    let of_band = |shape: &Shape| match shape {
        Shape::Box { edges, colour } if *colour == BAND => Some(*edges),
        _ => None,
    };
    scene.shapes.iter().filter_map(of_band).max_by_key(|edges| edges.3 - edges.1)
}

/// The middle of the figure of the axis.
fn figure(scene: &Scene, figure: &str) -> i32 {
    let of_axis = |text: &&super::scene::Text| text.align == Align::Middle && text.text == figure;
    scene.texts.iter().find(of_axis).expect("a figure").x
}

#[test]
fn texts_are_inside_and_apart_also_long_ones() {
    for (name, forest) in cases() {
        super::tests::assert_texts_apart(name, &scene(&forest));
    }
}

#[test]
fn intervals_are_between_their_ratios() {
    let drawn = scene(&forest(vec![
        row("two to four", [2.0, 3.0, 4.0], Better),
        row("a quarter to a half", [0.25, 0.3, 0.5], Worse),
    ]));
    let [one, two] = ["1", "2"].map(|ratio| figure(&drawn, ratio));
    let double = two - one;
    let expected = [(two, two + double), (one - 2 * double, one - double)];
    for (found, expected) in level(&drawn, INTERVAL).into_iter().zip(expected) {
        assert!(
            found.0.abs_diff(expected.0) <= 2 && found.1.abs_diff(expected.1) <= 2,
            "{found:?} {expected:?}"
        );
    }
    assert_eq!(level(&drawn, INTERVAL).len(), 2);
}

#[test]
fn an_interval_is_between_the_labels_and_the_figures() {
    for (name, forest) in cases() {
        let drawn = scene(&forest);
        let edge = |align: Align| {
            let texts = drawn.texts.iter().filter(move |text| text.align == align);
            texts.map(|text| text.edges().expect("a width"))
        };
        let figures = edge(Align::Right).map(|edges| edges.0).min().expect("figures");
        let labels = edge(Align::Left).filter(|edges| edges.0 == EDGE).map(|edges| edges.2);
        let labels = labels.max().expect("labels");
        for (low, high) in level(&drawn, INTERVAL).into_iter().chain(level(&drawn, SHARE)) {
            assert!(labels < low - POINT && low <= high && high + POINT < figures, "{name}: {low} {high}");
        }
    }
}

#[test]
fn an_interval_beyond_the_page_ends_in_an_arrow() {
    let drawn = scene(&endless());
    let arrows = triangles(&drawn).into_iter().filter(|[tip, up, down]| tip.1 * 2 == up.1 + down.1);
    let tips: Vec<i32> = arrows.map(|[tip, ..]| tip.0).collect();
    let lines = level(&drawn, INTERVAL);
    assert_eq!(tips.len(), 3, "both ends of the first, and one end of a share");
    assert!(tips.contains(&lines[0].0) && tips.contains(&lines[0].1), "{tips:?} {lines:?}");
    assert_eq!(triangles(&scene(&near_1())).len(), 4, "better and worse, and their legend: no arrow");
}

#[test]
fn the_legend_lists_what_occurs() {
    let names = |forest: &Forest| {
        verdict_mark::names(forest).into_iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    };
    let all = ["better", "equivalent", "worse", "undecided", "within the margin of ±1 %"];
    assert_eq!(names(&near_1()), all);
    let mut one = forest(vec![row("worse", [0.95, 0.96, 0.97], Worse)]);
    assert_eq!(names(&one), ["worse", "within the margin of ±1 %"]);
    one.margin = 0.0;
    assert_eq!(names(&one), ["worse"]);
    assert!(names(&endless()).contains(&"pale: the own share".into()));
}

/// So that they can be told apart without colours.
#[test]
fn verdicts_differ_in_form() {
    let forms = [Better, Equivalent, Worse, Undecided].map(|verdict| verdict_mark::mark(verdict).form);
    assert!(forms.iter().enumerate().all(|(at, form)| !forms[..at].contains(form)), "{forms:?}");
    for verdict in [Better, Equivalent, Worse, Undecided] {
        let forest = forest(vec![row("any", [0.9, 1.0, 1.1], verdict)]);
        assert_eq!(verdict_mark::names(&forest)[0].0, verdict.to_string());
    }
}

#[test]
fn the_band_is_the_margin_around_1() {
    let drawn = scene(&Forest { margin: 0.02, ..near_1() });
    let (left, _, right, _) = band(&drawn).expect("a band");
    let [low, one, high] = ["0.98", "1.00", "1.02"].map(|ratio| figure(&drawn, ratio));
    assert_eq!((left, right), (low, high));
    assert!(left < one && one < right);
    assert_eq!(band(&scene(&Forest { margin: 0.0, ..near_1() })), None);
    let wide = scene(&Forest { margin: 3.0, ..near_1() });
    assert!(band(&wide).is_some_and(|edges| edges.0 > 0 && edges.2 < wide.width));
}

#[test]
fn only_several_families_have_headings() {
    let has_heading = |forest: &Forest| scene(forest).texts.iter().any(|text| text.text == "IPv4");
    assert!(has_heading(&far_and_near()) && !has_heading(&near_1()));
}

#[test]
fn the_picture_is_as_high_as_its_rows() {
    let heights = [1, 10, 40].map(|rows| {
        let drawn = scene(&forest(vec![row("a", [0.9, 1.0, 1.1], Undecided); rows]));
        assert_eq!(drawn.width, WIDTH);
        drawn.height
    });
    assert_eq!((heights[1] - heights[0]) * 30, (heights[2] - heights[1]) * 9);
}

#[test]
fn the_svg_has_every_text_and_both_drawings_are_reproducible() {
    let forest = far_and_near();
    let svg = forest.svg().expect("a drawing");
    let document = roxmltree::Document::parse(&svg).expect("a document");
    let text = |tag| document.descendants().find(|node| node.has_tag_name(tag)).and_then(|node| node.text());
    assert_eq!(text("title"), Some("Filters by their number of rules"));
    assert!(text("desc").is_some_and(|text| text.contains("multiple of no filter: intervals hold")));
    for text in ["IPv6", "34 times", "34.000 ×", "(33.100–35.200)", "equivalent", "within the margin"] {
        assert!(svg.contains(text), "{text}");
    }
    assert_eq!(forest.svg(), forest.svg());
    assert_eq!(forest.png(), forest.png());
}
