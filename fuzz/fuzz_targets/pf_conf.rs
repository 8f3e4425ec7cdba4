//! Rule sets of pf: refused with a place, or taken; then what is printed reads as the same rules.
#![no_main]

use std::io;

use fullview_filter::pf::config::{PfConfig, PfSetting};
use fullview_filter::pf::error::PfError;
use fullview_filter::pf::files::RulesetFiles;
use fullview_filter::pf::host::{HostAddress, HostFacts, HostInterface};
use fullview_filter::pf::load::load;

/// The rule set, which may include itself, and no other file.
struct Input<'a>(&'a str);

impl RulesetFiles for Input<'_> {
    fn read(&self, path: &str) -> io::Result<String> {
        if path == "input" { Ok(self.0.to_owned()) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

fn machine() -> HostFacts {
    let address = |text: &str, length| HostAddress {
        address: text.parse().unwrap(),
        length,
        broadcast: None,
        peer: None,
    };
    let addresses = vec![address("192.0.2.1", 24), address("fe80::1", 64), address("2001:db8::1", 64)];
    let groups = vec!["egress".to_owned()];
    HostFacts { interfaces: vec![HostInterface { name: "em0".to_owned(), groups, loopback: false, addresses }] }
}

fn read(text: &str) -> Result<PfConfig, PfError> {
    load("input", &Input(text), &machine())
}

libfuzzer_sys::fuzz_target!(|text: &str| {
    match read(text) {
        Ok(config) if prints_all(text) && can_be_quoted(&config) => {
            let printed = config.to_string();
            let again = read(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
            assert_eq!(again.to_string(), printed);
        }
        Ok(_) => {}
        Err(error) => assert!(error.to_string().contains(':')),
    }
});

/// What pfctl's form of printing leaves out or cannot quote changes what the printed rules mean.
fn prints_all(text: &str) -> bool {
    let lost = ["state-defaults", "state-policy", "floating", "load", "require-order", "include", "'", "%", "\\"];
    !lost.iter().any(|word| text.contains(word))
}

/// The value of a macro is printed in quotes, whatever it contains.
fn can_be_quoted(config: &PfConfig) -> bool {
    !config.settings.iter().any(|setting| matches!(setting, PfSetting::Macro { value, .. } if value.contains('"')))
}
