//! Experiment files: refused with the file's name and a reason, or taken with phases that are durations.
#![no_main]

use fullview_lab::Experiment;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match Experiment::<toml::Table>::parse("input", text) {
        Ok(asked) => {
            let longest = asked.window.measure_s * 1e3;
            assert!(
                longest > 0.0 && asked.window.slice_ms.is_none_or(|slice| slice > 0.0 && slice <= longest)
            );
            assert!(asked.first_look() >= 1 && asked.most_blocks() >= 1);
            assert!(asked.baseline() < asked.variants.len());
            let declared = asked.comparisons();
            assert!(
                declared
                    .iter()
                    .all(|pair| pair.variant < asked.variants.len() && pair.variant != pair.against)
            );
        }
        Err(error) => assert!(error.to_string().starts_with("input")),
    }
});
