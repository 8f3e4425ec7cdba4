//! The formats of netbenches: the first byte chooses the parser; an error names a line of the text.
#![no_main]

use fullview_netbenches::{LineError, blocks, claims, parse};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Some(format) = text.chars().next() else { return };
    let text = &text[format.len_utf8()..];
    let error: Option<LineError> = match format {
        'p' => parse::pktgen(text).err(),
        'i' => parse::info(text).err(),
        'e' => parse::equilibrium(text).err(),
        'g' => parse::call_graph(text).err(),
        _ => {
            blocks(text).iter().for_each(|block| drop((claims(block), block.labels(), block.width())));
            None
        }
    };
    assert!(error.is_none_or(|error| error.line >= 1 && error.line <= text.lines().count().max(1)));
});
