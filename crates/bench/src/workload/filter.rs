//! The filter of a router under test.

use std::io;

use fullview_filter::pf::files::RulesetFiles;
use fullview_plane::forward::BurstFilter;
use fullview_plane::interface::Interface;
use fullview_router::error::BadInput;
use fullview_router::filter::{FilterOptions, compile};

use crate::settings::FilterSettings;

/// What errors call the rules of an experiment.
const NAME: &str = "filter.rules";

/// Compiles the rules for a router with these interfaces, if there are any.
///
/// # Errors
/// Fails for rules that are wrong, that the forwarding loop cannot enforce, or that translate addresses.
pub fn filter(
    settings: &FilterSettings,
    interfaces: &[Interface],
    seed: u64,
) -> Result<Option<BurstFilter>, BadInput> {
    let (language, rules) = match (settings.language, &settings.rules) {
        (None, None) => return Ok(None),
        (Some(language), Some(rules)) => (language, rules),
        _ => return Err(BadInput("a filter needs both filter.language and filter.rules".into())),
    };
    let options = FilterOptions { language, file: NAME.into(), states: settings.states };
    let compiled =
        compile(&options, &Text(rules), interfaces).map_err(|error| BadInput(error.to_string()))?;
    if compiled.rules.translates() {
        let hint = "remove the rules that translate addresses: packets have to leave with the addresses that they came in with";
        return Err(BadInput(format!("{NAME}: {hint}")));
    }
    Ok(Some(BurstFilter::new(&compiled.rules, compiled.limits, seed)))
}

/// Rules that stand in the experiment; they can include no file.
struct Text<'r>(&'r str);

impl RulesetFiles for Text<'_> {
    fn read(&self, path: &str) -> io::Result<String> {
        match path {
            NAME => Ok(self.0.to_owned()),
            _ => Err(io::Error::other("the rules of an experiment include no files: write them into it")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullview_plane::wire::ethernet::Mac;
    use fullview_router::filter::FilterLanguage;

    fn made(language: FilterLanguage, rules: &str) -> Result<Option<BurstFilter>, BadInput> {
        let interfaces = [0, 1].map(|port| Interface::new(port, Mac([2; 6])));
        let settings = FilterSettings { language: Some(language), rules: Some(rules.into()), states: None };
        filter(&settings, &interfaces, 1)
    }

    #[test]
    fn both_languages_compile_and_wrong_rules_are_refused() {
        assert!(made(FilterLanguage::Pf, "pass all keep state").unwrap().is_some());
        let ipfw = "add 3000 allow ip from any to any keep-state";
        assert!(made(FilterLanguage::Ipfw, ipfw).unwrap().is_some());
        assert!(filter(&FilterSettings::default(), &[], 1).unwrap().is_none());
        let refused = |language, rules: &str| made(language, rules).err().unwrap().to_string();
        assert!(refused(FilterLanguage::Pf, "pass everything").contains("filter.rules:1"));
        assert!(refused(FilterLanguage::Ipfw, "add allow ip from nowhere").contains("filter.rules:1"));
        let nat = "nat on port1 from any to any -> 192.0.2.1";
        assert!(refused(FilterLanguage::Pf, nat).contains("remove the rules that translate"));
    }
}
