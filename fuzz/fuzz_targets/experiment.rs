//! Experiment files: refused with the file's name and a reason, or taken with phases that are durations.
#![no_main]

use fullview_lab::Experiment;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match Experiment::<toml::Table>::parse("input", text) {
        Ok(asked) => {
            assert!(asked.window.total() >= asked.window.measure());
            assert!(asked.window.sample() <= asked.window.total());
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
