//! The commands of a script, and what they change.

use super::ast::IpfwRule;
use super::config::IpfwConfig;
use super::error::IpfwError;
use super::nat;
use super::rule::{DEFAULT_RULE, rule};
use super::script;
use super::tables;
use super::tags::MOST_TAGS;
use super::words::{Parsed, Words};

/// The set of the default rule, which nothing changes.
const DEFAULT_SET: u8 = 31;
/// The distance between the numbers of rules that were added without one.
const STEP: u16 = 100;

impl IpfwConfig {
    /// Reads a script. `file` stands in errors.
    pub fn load(file: &str, text: &str) -> Result<Self, IpfwError> {
        let mut config = IpfwConfig::default();
        for command in script::commands(file, text)? {
            config.command(&mut Words::new(file, &command))?;
        }
        Ok(config)
    }

    fn command(&mut self, words: &mut Words<'_>) -> Parsed<()> {
        match words.need("a command")? {
            "add" => self.add(rule(words)?, words),
            "flush" => {
                self.rules.retain(|rule| rule.set == DEFAULT_SET);
                words.end()
            }
            "zero" | "resetlog" => Ok(()),
            "delete" => self.delete(words),
            "set" => self.set(words),
            "table" => tables::command(self, words),
            "nat" => self.nat(words),
            other => Err(words.error(format!(
                "`{other}` is not supported in a script; add, delete, flush, set, table, nat and zero are"
            ))),
        }
    }

    /// Adds a rule behind those with its number or a smaller one.
    fn add(&mut self, mut rule: IpfwRule, words: &Words<'_>) -> Parsed<()> {
        if self.tags.add(&rule) && self.tags.count() > MOST_TAGS {
            return Err(words
                .error(format!("rules set and ask about more than {MOST_TAGS} different tags; use fewer")));
        }
        tables::claim_tables(self, &rule, words)?;
        if rule.number == 0 {
            let last = self.rules.last().map_or(0, |rule| rule.number);
            rule.number = last.saturating_add(STEP).min(DEFAULT_RULE - 1);
        }
        let place = self.rules.partition_point(|other| other.number <= rule.number);
        self.rules.insert(place, rule);
        Ok(())
    }

    fn delete(&mut self, words: &mut Words<'_>) -> Parsed<()> {
        if words.take("set") {
            let set = words.number("a set", 31)? as u8;
            self.rules.retain(|rule| rule.set != set);
            return words.end();
        }
        while !words.is_done() {
            let number = words.number("a rule's number", u32::from(DEFAULT_RULE))? as u16;
            let count = self.rules.len();
            self.rules.retain(|rule| rule.number != number);
            if self.rules.len() == count {
                return Err(words.error(format!("there is no rule {number} to delete")));
            }
        }
        Ok(())
    }

    fn set(&mut self, words: &mut Words<'_>) -> Parsed<()> {
        match words.need("disable, enable, swap or move")? {
            "swap" => {
                let (one, other) = (set_number(words)?, set_number(words)?);
                self.renumber_sets(|set| {
                    if set == one {
                        other
                    } else if set == other {
                        one
                    } else {
                        set
                    }
                });
                words.end()
            }
            "move" => self.move_set(words),
            first @ ("disable" | "enable") => self.switch_sets(first == "disable", words),
            other => {
                Err(words.error(format!("`{other}` is not supported; disable, enable, swap and move are")))
            }
        }
    }

    fn switch_sets(&mut self, mut disable: bool, words: &mut Words<'_>) -> Parsed<()> {
        while !words.is_done() {
            match words.peek() {
                Some("disable") => disable = true,
                Some("enable") => disable = false,
                _ => {
                    let bit = 1 << set_number(words)?;
                    self.disabled_sets =
                        if disable { self.disabled_sets | bit } else { self.disabled_sets & !bit };
                    continue;
                }
            }
            words.next();
        }
        Ok(())
    }

    fn move_set(&mut self, words: &mut Words<'_>) -> Parsed<()> {
        if words.take("rule") {
            let number = words.number("a rule's number", u32::from(DEFAULT_RULE))? as u16;
            words.expect("to")?;
            let to = set_number(words)?;
            self.rules.iter_mut().filter(|rule| rule.number == number).for_each(|rule| rule.set = to);
        } else {
            let from = set_number(words)?;
            words.expect("to")?;
            let to = set_number(words)?;
            self.renumber_sets(|set| if set == from { to } else { set });
        }
        words.end()
    }

    fn renumber_sets(&mut self, new: impl Fn(u8) -> u8) {
        self.rules.iter_mut().for_each(|rule| rule.set = new(rule.set));
    }

    fn nat(&mut self, words: &mut Words<'_>) -> Parsed<()> {
        // Above are the marks of other states.
        let number = words.number("the number of a nat instance", 32766)? as u16;
        words.expect("config")?;
        let instance = nat::instance(words)?;
        self.nats.insert(number, instance);
        Ok(())
    }
}

fn set_number(words: &mut Words<'_>) -> Parsed<u8> {
    // Set 31 holds the default rule, and cannot be switched off or moved.
    words.number("a set", u32::from(DEFAULT_SET) - 1).map(|set| set as u8)
}
