//! Scripts of ipfw: refused with a place, or taken; then what is printed reads as the same rules, and they compile.
#![no_main]

use fullview_filter::interfaces::Interfaces;
use fullview_filter::ipfw::IpfwConfig;
use fullview_filter::ruleset::RuleSet;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match IpfwConfig::load("input", text) {
        Ok(config) => {
            let printed: Vec<_> = config.rules.iter().map(ToString::to_string).collect();
            // The shell's signs have lost their meaning in what is printed.
            if !printed.iter().any(|rule| rule.contains(['#', '$', '"', '\'', '\\', '='])) {
                let script: String = printed.iter().map(|rule| format!("add {rule}\n")).collect();
                let again =
                    IpfwConfig::load("printed", &script).unwrap_or_else(|error| panic!("{error}\n{script}"));
                assert_eq!(again.rules.iter().map(ToString::to_string).collect::<Vec<_>>(), printed);
            }
            RuleSet::new(config.lower(&Interfaces::default())).unwrap();
        }
        Err(error) => assert!(error.line > 0 && error.column > 0),
    }
});
