//! Columns of figures as ministat reads them: an error that says what is wrong, or a text that ends its last line.
#![no_main]

use fullview_lab::ministat::{Confidence, MOST_SETS, Set, Style, WIDTHS, parse, render};

/// Separates the sets of one input.
const NEXT_SET: u8 = 0xff;

fn style(options: u8, width: u8) -> Style {
    let flag = |bit: u8| options & (1 << bit) != 0;
    Style {
        confidence: Confidence::ALL[usize::from(options >> 4) % Confidence::ALL.len()],
        separate_bars: flag(0),
        width: flag(1).then(|| usize::from(width)),
        plot: flag(2),
        compare: flag(3),
        headers: width & 1 == 0,
        exact_reference: width & 2 == 0,
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let [options, width, text @ ..] = data else { return };
    let columns = text.split(|byte| *byte == NEXT_SET).map(|text| parse(text, 1, b" \t"));
    let Ok(columns) = columns.collect::<Result<Vec<_>, _>>() else { return };
    let named = |values: Vec<f64>| Set { label: "set".into(), values };
    let sets: Vec<Set> = columns.into_iter().map(named).collect();
    let style = style(*options, *width);
    match render(&sets, &style) {
        Ok(text) => {
            assert!(text.ends_with('\n') && sets.len() <= MOST_SETS);
            assert!(!style.plot || style.width.is_none_or(|width| WIDTHS.contains(&width)));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
