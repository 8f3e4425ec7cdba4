//! Whole rule sets: what is set and defined, then the rules of each kind.

use std::fmt::{Display, Formatter, Result};

use crate::pf::config::{PfConfig, PfOption, PfRules, PfSetting, Syncookies, TableDefinition, TableSource};
use crate::pf::rule::BlockReply;
use crate::pf::state_options::StateBinding;

impl Display for PfConfig {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        self.settings.iter().try_for_each(|setting| setting.fmt(out))?;
        self.rules.fmt(out)?;
        self.loaded.iter().try_for_each(|anchor| anchor.config.fmt(out))
    }
}

impl Display for PfRules {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let kinds = [&self.scrub, &self.nat, &self.rdr, &self.binat, &self.filter];
        kinds.into_iter().flatten().try_for_each(|rule| writeln!(out, "{rule}"))
    }
}

impl Display for PfSetting {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            PfSetting::Macro { name, value } => writeln!(out, "{name} = \"{value}\""),
            PfSetting::Table(table) => table.fmt(out),
            PfSetting::Option { option, .. } => option.fmt(out),
        }
    }
}

impl Display for TableDefinition {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "table <{}>", self.name)?;
        let flags = [(" const", self.constant), (" persist", self.persist), (" counters", self.counters)];
        flags.iter().filter(|(_, set)| *set).try_for_each(|(flag, _)| out.write_str(flag))?;
        self.sources.iter().try_for_each(|source| write!(out, " {source}"))?;
        writeln!(out)
    }
}

impl Display for TableSource {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            TableSource::File { path, .. } => write!(out, "file \"{path}\""),
            TableSource::List(entries) => {
                out.write_str("{")?;
                entries.iter().try_for_each(|entry| write!(out, " {entry}"))?;
                out.write_str(" }")
            }
        }
    }
}

impl Display for PfOption {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            PfOption::Skip(names) => skip(out, names),
            PfOption::Timeout(timeout, seconds) => writeln!(out, "set timeout {} {seconds}", timeout.name()),
            PfOption::Limit(limit, count) => writeln!(out, "set limit {} {count}", limit.name()),
            PfOption::Optimization(one) => writeln!(out, "set optimization {}", one.name()),
            PfOption::BlockPolicy(reply) => writeln!(out, "set block-policy {}", policy(*reply)),
            PfOption::FailPolicy(reply) => writeln!(out, "set fail-policy {}", policy(*reply)),
            PfOption::StatePolicy(binding) => writeln!(out, "set state-policy {}", state_policy(*binding)),
            PfOption::LogInterface(name) => {
                writeln!(out, "set loginterface {}", name.as_deref().unwrap_or("none"))
            }
            PfOption::Debug(level) => writeln!(out, "set debug {}", level.name()),
            PfOption::RulesetOptimization(_) | PfOption::KeepCounters => Ok(()),
            option => rare(out, option),
        }
    }
}

fn rare(out: &mut Formatter<'_>, option: &PfOption) -> Result {
    match option {
        PfOption::Fingerprints(path) => writeln!(out, "set fingerprints \"{path}\""),
        PfOption::HostId(id) => writeln!(out, "set hostid {id:#010x}"),
        PfOption::RequireOrder(require) => writeln!(out, "set require-order {}", yes(*require)),
        PfOption::Reassemble { on, no_df } => {
            writeln!(out, "set reassemble {} {}", yes(*on), if *no_df { "no-df" } else { "" })
        }
        PfOption::Syncookies(cookies) => writeln!(out, "set syncookies {cookies}"),
        _ => Ok(()),
    }
}

impl Display for Syncookies {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Syncookies::Never => out.write_str("never"),
            Syncookies::Always => out.write_str("always"),
            Syncookies::Adaptive { start, end } => write!(out, "adaptive (start {start}%, end {end}%)"),
        }
    }
}

fn skip(out: &mut Formatter<'_>, names: &[String]) -> Result {
    if names.is_empty() {
        return writeln!(out, "set skip on none");
    }
    writeln!(out, "set skip on {{ {} }}", names.join(" "))
}

fn policy(reply: BlockReply) -> &'static str {
    if reply == BlockReply::Return { "return" } else { "drop" }
}

fn state_policy(binding: StateBinding) -> &'static str {
    match binding {
        StateBinding::Interface => "if-bound",
        StateBinding::Floating => "floating",
    }
}

fn yes(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}
