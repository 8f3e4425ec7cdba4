//! Flame graphs, and the difference of two (Gregg, "The Flame Graph", CACM 59(6), 2016), drawn by the library inferno.

use std::io::Cursor;

use inferno::{differential, flamegraph};

use crate::error::ProfileError;
use crate::stacks::Stacks;

/// Returns the SVG of a profile; without stacks it says that there are none.
pub fn flame(title: &str, stacks: &Stacks) -> Result<Vec<u8>, ProfileError> {
    let mut options = options(title);
    draw(&mut options, stacks.to_string().as_bytes(), stacks)
}

/// Returns the SVG of `after`, in which red has a larger share of the time than in `before`, and blue a smaller one. Counts
/// are scaled to the same total first: profiles of equal length compare shares, not speeds.
pub fn difference(title: &str, before: &Stacks, after: &Stacks) -> Result<Vec<u8>, ProfileError> {
    let mut folded = Vec::new();
    let normalize = differential::Options { normalize: true, ..Default::default() };
    let [one, other] = [before, after].map(|stacks| Cursor::new(stacks.to_string()));
    differential::from_readers(normalize, one, other, &mut folded).map_err(ProfileError::Graph)?;
    let mut options = options(title);
    options.subtitle =
        Some("red: a larger share of the time than in the baseline; blue: a smaller one".into());
    draw(&mut options, &folded, after)
}

fn options(title: &str) -> flamegraph::Options<'static> {
    let mut options = flamegraph::Options::default();
    options.title = title.to_owned();
    options.count_name = "samples".into();
    // Every graph of a campaign gives a function the same colour.
    options.deterministic = true;
    options.colors = flamegraph::Palette::Basic(flamegraph::color::BasicPalette::Aqua);
    options
}

fn draw(
    options: &mut flamegraph::Options<'_>,
    folded: &[u8],
    stacks: &Stacks,
) -> Result<Vec<u8>, ProfileError> {
    let mut svg = Vec::new();
    match flamegraph::from_reader(options, folded, &mut svg) {
        // The library has then drawn a page that says so.
        Err(_) if stacks.total() == 0 => Ok(svg),
        drawn => drawn.map(|()| svg).map_err(ProfileError::Graph),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::Function;

    fn stacks(of: &[(&str, u64)]) -> Stacks {
        let function = |name: &str| Function { name: name.to_owned(), file: None };
        of.iter().map(|(path, count)| (path.split('/').map(function).collect(), *count)).collect()
    }

    fn text(svg: &[u8]) -> String {
        let svg = String::from_utf8(svg.to_vec()).unwrap();
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        roxmltree::Document::parse_with_options(&svg, options).expect("an SVG is XML");
        svg
    }

    #[test]
    fn a_graph_has_every_function_with_its_samples() {
        let svg = text(&flame("the title", &stacks(&[("a/b", 30), ("a/c", 10)])).unwrap());
        for part in
            ["the title", "a (40 samples, 100.00%)", "b (30 samples, 75.00%)", "c (10 samples, 25.00%)"]
        {
            assert!(svg.contains(part), "{part}: {svg}");
        }
    }

    #[test]
    fn a_profile_without_stacks_is_a_picture_too() {
        let (none, some) = (stacks(&[]), stacks(&[("a/b", 1)]));
        let pictures =
            [flame("none", &none), difference("none", &some, &none), difference("all", &none, &some)];
        let texts = pictures.map(|svg| text(&svg.unwrap()));
        assert!(texts[0].contains("No valid input") && texts[1].contains("No valid input"), "{texts:?}");
        assert!(texts[2].contains("b (1 samples"), "{}", texts[2]);
    }

    #[test]
    fn a_difference_names_the_change_of_the_share() {
        let (before, after) = (stacks(&[("a/b", 50), ("a/c", 50)]), stacks(&[("a/b", 150), ("a/c", 50)]));
        let svg = text(&difference("two", &before, &after).unwrap());
        assert!(svg.contains("+25.00%") && svg.contains("-25.00%"), "{svg}");
    }
}
