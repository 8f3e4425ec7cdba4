//! The filter of a router under test.

use std::fs;
use std::io;
use std::path::Path;

use fullview_filter::pf::files::RulesetFiles;
use fullview_filter::rule::{PoolOrder, PortChoice, Translation};
use fullview_plane::forward::BurstFilter;
use fullview_plane::interface::Interface;
use fullview_router::error::BadInput;
use fullview_router::filter::{FilterLanguage, FilterOptions, FilterPlace, compile};

use super::other_rules;
use crate::settings::FilterSettings;

/// What errors call the rules of an experiment.
const NAME: &str = "filter.rules";
/// The names under which rules of pf include what is generated.
const OTHER_RULES: &str = "other-rules";
const TABLE_ADDRESSES: &str = "table-addresses";
/// So many take a minute to compile.
const MOST_OTHERS: u32 = 1_000_000;

/// Compiles the rules for a router with these interfaces, if there are any.
///
/// # Errors
/// Fails for rules that are wrong, that the forwarding loop cannot enforce, or that translate addresses to others.
pub fn filter(
    settings: &FilterSettings,
    interfaces: &[Interface],
    seed: u64,
) -> Result<Option<BurstFilter>, BadInput> {
    let Some(text) = Text::of(settings, seed)? else { return Ok(None) };
    let (place, language) = (FilterPlace::Standalone, text.language);
    let options = FilterOptions {
        place,
        workers: 1,
        language,
        file: NAME.into(),
        states: settings.states,
        kernel_flows: 0,
    };
    let compiled = compile(&options, &text, interfaces).map_err(|error| BadInput(error.to_string()))?;
    if compiled.rules.translations().any(|to| !may_keep_ends(to)) {
        return Err(BadInput(format!("{NAME}: {OTHER_ENDS}")));
    }
    let mut filter = BurstFilter::new(&compiled.rules, compiled.limits, seed);
    settings.known_flows.into_iter().for_each(|flows| filter.keep_flows(flows as usize));
    Ok(Some(filter))
}

/// Writes the rules into a folder, for a program that reads them there, and returns its arguments.
///
/// # Errors
/// Fails if a file cannot be written, or for settings that are no filter.
pub fn write_rules(settings: &FilterSettings, seed: u64, folder: &Path) -> Result<Vec<String>, BadInput> {
    let Some(text) = Text::of(settings, seed)? else { return Ok(Vec::new()) };
    let path = |name: &str| folder.join(name).display().to_string();
    let quoted = |name: &str| format!("\"{name}\"");
    for name in [NAME, OTHER_RULES, TABLE_ADDRESSES] {
        let failed = |error: io::Error| BadInput(format!("{}: {error}", path(name)));
        let mut rules = text.read(name).map_err(failed)?;
        for other in [OTHER_RULES, TABLE_ADDRESSES] {
            rules = rules.replace(&quoted(other), &quoted(&path(other)));
        }
        fs::write(path(name), rules).map_err(failed)?;
    }
    let language = match text.language {
        FilterLanguage::Pf => "pf",
        FilterLanguage::Ipfw => "ipfw",
    };
    Ok(["--filter", &path(NAME), "--filter-language", language].map(str::to_owned).into())
}

/// Rules that stand in the experiment. The only other files are those that are generated.
struct Text<'r> {
    rules: &'r str,
    language: FilterLanguage,
    /// How many other rules, and addresses of a table.
    others: [u32; 2],
    seed: u64,
}

impl Text<'_> {
    /// The text of these settings, if they are a filter.
    fn of(settings: &FilterSettings, seed: u64) -> Result<Option<Text<'_>>, BadInput> {
        let (language, rules) = match (settings.language, &settings.rules) {
            (None, None) => return Ok(None),
            (Some(language), Some(rules)) => (language, rules),
            _ => return Err(BadInput("a filter needs both filter.language and filter.rules".into())),
        };
        let others = [settings.other_rules, settings.table_addresses].map(Option::unwrap_or_default);
        if others.into_iter().any(|number| number > MOST_OTHERS) {
            return Err(BadInput(format!("other-rules, table-addresses: {MOST_OTHERS} are possible")));
        }
        Ok(Some(Text { rules, language, others, seed }))
    }

    /// An ipfw script includes no files; its rules have numbers, so that their place in the text does not matter.
    fn script(&self) -> String {
        let entries = other_rules::addresses(self.others[1], self.seed).into_iter();
        let entries: String = entries.map(|address| format!("table others add {address}\n")).collect();
        let others = other_rules::rules(self.language, self.others[0], self.seed);
        format!("{}\n{others}{entries}", self.rules)
    }
}

impl RulesetFiles for Text<'_> {
    fn read(&self, path: &str) -> io::Result<String> {
        match (path, self.language) {
            (NAME, FilterLanguage::Pf) => Ok(self.rules.to_owned()),
            (NAME, FilterLanguage::Ipfw) => Ok(self.script()),
            (OTHER_RULES, _) => Ok(other_rules::rules(self.language, self.others[0], self.seed)),
            (TABLE_ADDRESSES, _) => {
                let addresses = other_rules::addresses(self.others[1], self.seed).into_iter();
                Ok(addresses.map(|address| format!("{address}\n")).collect())
            }
            _ => Err(io::Error::other(
                "the rules of an experiment include no files but \"other-rules\" and \"table-addresses\": write them \
                 into it",
            )),
        }
    }
}

/// Packets are recognized by their addresses and ports.
const OTHER_ENDS: &str = "packets have to leave with the addresses and ports that they came in with: translate sources to \
                          the network that they are in, with bitmask and static-port";

/// Whether a translation may give each packet the address and port that it has. Whether it does is checked packet by packet.
fn may_keep_ends(to: &Translation) -> bool {
    to.pool.order == PoolOrder::Bitmask && to.ports == PortChoice::Keep
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullview_plane::wire::ethernet::Mac;

    fn made(language: FilterLanguage, rules: &str) -> Result<Option<BurstFilter>, BadInput> {
        let interfaces = [0, 1].map(|port| Interface::new(port, Mac([2; 6])));
        let settings = FilterSettings {
            language: Some(language),
            rules: Some(rules.into()),
            other_rules: Some(100),
            table_addresses: Some(50),
            ..FilterSettings::default()
        };
        filter(&settings, &interfaces, 1)
    }

    #[test]
    fn other_rules_stand_before_those_of_the_experiment() {
        let pf =
            "table <others> file \"table-addresses\"\nblock from <others>\ninclude \"other-rules\"\npass\n";
        let ipfw = "add 60000 deny ip from table(others) to any\nadd 60001 allow ip from any to any\n";
        for (language, text) in [(FilterLanguage::Pf, pf), (FilterLanguage::Ipfw, ipfw)] {
            let made = made(language, text).unwrap().unwrap();
            let rules: Vec<&str> = made.rules().rules().iter().map(|rule| rule.text.as_str()).collect();
            let others = rules.iter().filter(|rule| {
                rule.contains("port") || rule.contains("udp from") || rule.contains("tcp from")
            });
            assert_eq!(others.count(), 100, "{rules:?}");
            assert!(!rules.last().unwrap().contains("198.18."), "{rules:?}");
        }
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
        assert!(refused(FilterLanguage::Pf, nat).contains("bitmask and static-port"));
        let own = "nat on port1 from any to any -> 198.18.0.0/15 bitmask static-port\npass";
        assert!(made(FilterLanguage::Pf, own).unwrap().is_some());
    }

    #[test]
    fn written_rules_say_the_same_as_those_in_memory() {
        let rules =
            "table <others> file \"table-addresses\"\nblock from <others>\ninclude \"other-rules\"\npass\n";
        let settings = FilterSettings {
            language: Some(FilterLanguage::Pf),
            rules: Some(rules.into()),
            other_rules: Some(10),
            table_addresses: Some(5),
            ..FilterSettings::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let arguments = write_rules(&settings, 1, folder.path()).unwrap();
        assert_eq!([&arguments[0], &arguments[2], &arguments[3]], ["--filter", "--filter-language", "pf"]);
        let read = fs::read_to_string(&arguments[1]).unwrap();
        let included = format!("include \"{}\"", folder.path().join(OTHER_RULES).display());
        assert!(read.contains(&included), "{read}");
        let in_memory = Text::of(&settings, 1).unwrap().unwrap();
        for name in [OTHER_RULES, TABLE_ADDRESSES] {
            let written = fs::read_to_string(folder.path().join(name)).unwrap();
            assert_eq!(written, in_memory.read(name).unwrap());
            assert!(!written.is_empty());
        }
        assert!(write_rules(&FilterSettings::default(), 1, folder.path()).unwrap().is_empty());
    }
}
