//! Rule sets in files.

use std::path::Path;

use fullview_filter::interfaces::Interfaces;
use fullview_filter::ipfw::IpfwConfig;
use fullview_filter::pf::files::{FileSystem, RulesetFiles};
use fullview_filter::pf::host::HostFacts;
use fullview_filter::pf::load::load;
use fullview_filter::pf::lower::lower;
use fullview_filter::ruleset::RuleSet;
use fullview_router::error::BadInput;

use fullview_router::filter::FilterLanguage;

/// The name of a file. Rule sets name files too, in text, so that other names are refused.
pub fn name(file: &Path) -> Result<&str, BadInput> {
    let wrong = || BadInput(format!("{}: the file's name is not UTF-8; rename it", file.display()));
    file.to_str().ok_or_else(wrong)
}

/// The text of a script.
pub fn text(file: &str) -> Result<String, BadInput> {
    let unreadable = |error| BadInput(format!("{file}: cannot read the rules: {error}; give a text file"));
    FileSystem::default().read(file).map_err(unreadable)
}

/// The rules of a file in their compiled form.
pub fn compiled(
    file: &str,
    language: FilterLanguage,
    facts: &HostFacts,
    interfaces: &Interfaces,
) -> anyhow::Result<RuleSet> {
    let parts = match language {
        FilterLanguage::Pf => lower(&load(file, &FileSystem::default(), facts)?, interfaces)?.parts,
        FilterLanguage::Ipfw => IpfwConfig::load(file, &text(file)?)?.lower(interfaces),
    };
    Ok(RuleSet::new(parts)?)
}
