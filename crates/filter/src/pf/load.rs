//! Reads a rule set and the files that it names.

use crate::pf::config::{LoadedAnchor, PfConfig, PfOption, PfRules, PfSetting};
use crate::pf::error::{PfError, PfResult, Position};
use crate::pf::expand::budget::RuleBudget;
use crate::pf::expand::{antispoof, rules, tables};
use crate::pf::files::{BoundedFiles, RulesetFiles};
use crate::pf::host::HostFacts;
use crate::pf::lexer::{Lexer, Macros};
use crate::pf::parse::statement::statement;
use crate::pf::parse::tokens::Tokens;
use crate::pf::policy::{Policy, Stage};
use crate::pf::rule::{PfRule, TranslationKind};
use crate::pf::syntax::{ActionSyntax, AntispoofSyntax, RuleSyntax, Statement};

/// Files that include each other deeper than this include themselves.
const DEEPEST: usize = 16;

/// Reads the rule set in a file.
pub fn load(path: &str, files: &dyn RulesetFiles, facts: &HostFacts) -> PfResult<PfConfig> {
    let start = Position { file: path.into(), line: 1, column: 1 };
    read_file(path, &start, &BoundedFiles::new(files), facts, &RuleBudget::beside(0), 0)
}

fn read_file(
    path: &str,
    named_at: &Position,
    files: &dyn RulesetFiles,
    facts: &HostFacts,
    budget: &RuleBudget,
    depth: usize,
) -> PfResult<PfConfig> {
    let mut reader = PfReader {
        files,
        facts,
        macros: Macros::new(),
        policy: Policy::default(),
        config: PfConfig::default(),
        budget,
        depth,
    };
    reader.file(path, named_at)?;
    Ok(reader.config)
}

struct PfReader<'a> {
    files: &'a dyn RulesetFiles,
    facts: &'a HostFacts,
    macros: Macros,
    policy: Policy,
    config: PfConfig,
    /// It is that of all files together.
    budget: &'a RuleBudget,
    depth: usize,
}

impl PfReader<'_> {
    fn file(&mut self, path: &str, named_at: &Position) -> PfResult<()> {
        if self.depth == DEEPEST {
            let problem = format!("'{path}' is included more than {DEEPEST} files deep");
            return Err(PfError::invalid(
                named_at,
                problem,
                "do not let files include each other in a circle",
            ));
        }
        let text = self.files.read(path).map_err(|error| PfError::unreadable(named_at, path, &error))?;
        self.depth += 1;
        self.text(path, &text)?;
        self.depth -= 1;
        Ok(())
    }

    fn text(&mut self, path: &str, text: &str) -> PfResult<()> {
        let mut lexer = Lexer::new(path, text);
        loop {
            let tokens = lexer.statement(&self.macros)?;
            let last = tokens.last().is_none_or(|token| token.kind == crate::pf::token::TokenKind::End);
            if let Some(statement) = statement(&mut Tokens::new(tokens))? {
                self.apply(statement)?;
            }
            if last {
                return Ok(());
            }
        }
    }

    fn apply(&mut self, statement: Statement) -> PfResult<()> {
        match statement {
            Statement::Include { position, path } => self.file(&path, &position)?,
            Statement::Macro { name, value } => self.define(name, value),
            Statement::Options { position, options } => {
                options.into_iter().try_for_each(|option| self.option(option, &position))?;
            }
            Statement::StateDefaults(options) => self.policy.state_defaults = Some(options),
            Statement::Table(syntax) => {
                let table = tables::table(syntax, self.files, self.facts)?;
                self.config.settings.push(PfSetting::Table(table));
            }
            Statement::Rule(rule) => self.rule(&rule)?,
            Statement::Antispoof(antispoof) => self.antispoof(&antispoof)?,
            Statement::LoadAnchor { position, name, path } => self.load_anchor(name, &path, &position)?,
        }
        Ok(())
    }

    fn define(&mut self, name: String, value: String) {
        self.macros.insert(name.clone(), value.clone());
        self.config.settings.push(PfSetting::Macro { name, value });
    }

    fn option(&mut self, option: PfOption, position: &Position) -> PfResult<()> {
        match option {
            PfOption::BlockPolicy(reply) => self.policy.block = reply,
            PfOption::StatePolicy(binding) => self.policy.binding = binding,
            PfOption::RequireOrder(require) => self.policy.require_order = require,
            _ => {}
        }
        if !is_anywhere(&option) {
            self.policy.enter(Stage::Options, position)?;
        }
        self.config.settings.push(PfSetting::Option { position: position.clone(), option });
        Ok(())
    }

    fn rule(&mut self, rule: &RuleSyntax) -> PfResult<()> {
        self.policy.enter(stage(&rule.action), &rule.position)?;
        let number = list(&mut self.config.rules, &rule.action).len();
        let expanded = rules::rules(rule, &self.policy, self.facts, number, self.budget)?;
        list(&mut self.config.rules, &rule.action).extend(expanded);
        Ok(())
    }

    fn antispoof(&mut self, syntax: &AntispoofSyntax) -> PfResult<()> {
        antispoof::rules(syntax, self.facts).iter().try_for_each(|rule| self.rule(rule))
    }

    fn load_anchor(&mut self, name: String, path: &str, position: &Position) -> PfResult<()> {
        let config = read_file(path, position, self.files, self.facts, self.budget, self.depth)?;
        self.config.loaded.push(LoadedAnchor { position: position.clone(), name, config });
        Ok(())
    }
}

/// Whether an option may stand after rules.
fn is_anywhere(option: &PfOption) -> bool {
    matches!(
        option,
        PfOption::Skip(_)
            | PfOption::StatePolicy(_)
            | PfOption::RequireOrder(_)
            | PfOption::RulesetOptimization(_)
            | PfOption::KeepCounters
            | PfOption::HostId(_)
            | PfOption::Syncookies(_)
    )
}

fn translation(action: &ActionSyntax) -> Option<TranslationKind> {
    match action {
        ActionSyntax::Translate { kind, .. } | ActionSyntax::NoTranslate(kind) => Some(*kind),
        ActionSyntax::Anchor(anchor) => anchor.kind,
        _ => None,
    }
}

fn is_scrub(action: &ActionSyntax) -> bool {
    matches!(action, ActionSyntax::Scrub | ActionSyntax::NoScrub)
}

fn stage(action: &ActionSyntax) -> Stage {
    match translation(action) {
        Some(_) => Stage::Translation,
        None if is_scrub(action) => Stage::Normalization,
        None => Stage::Filtering,
    }
}

fn list<'a>(rules: &'a mut PfRules, action: &ActionSyntax) -> &'a mut Vec<PfRule> {
    match translation(action) {
        Some(TranslationKind::Nat) => &mut rules.nat,
        Some(TranslationKind::Rdr) => &mut rules.rdr,
        Some(TranslationKind::Binat) => &mut rules.binat,
        None if is_scrub(action) => &mut rules.scrub,
        None => &mut rules.filter,
    }
}
