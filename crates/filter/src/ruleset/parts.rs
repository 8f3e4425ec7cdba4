use std::sync::Arc;

use super::list::RuleList;
use super::successors::{FormerRule, successors};
use super::touched_tables::{TouchedTables, table_of};
use crate::address_table::{AddressTable, TableEntry};
use crate::rule::{
    Clause, CompiledRule, FragmentTest, InterfaceSet, NamedTable, RuleAction, SourceLimits, StateOptions,
    TableId, Test,
};
use crate::state::{Adoption, MAX_TIMEOUT, RuleCounters, RuleMap, Timeouts};

/// Whose semantics a rule set has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// States before rules; the last rule that matches wins, unless one is quick.
    Pf,
    /// The first rule that matches wins; states where a rule looks for them.
    Ipfw,
}

impl Language {
    /// Whether its tables may have an entry: only ipfw gives entries values, only pf has exceptions.
    pub fn has(self, entry: &TableEntry) -> bool {
        match self {
            Language::Pf => entry.value == 0,
            Language::Ipfw => !entry.negated,
        }
    }
}

/// What a rule set is made of.
#[derive(Clone, Debug)]
pub struct RuleSetParts {
    pub language: Language,
    pub rules: Vec<CompiledRule>,
    /// pf's rules of translation, of which the first that matches wins. A packet on its way in is tried against those that
    /// translate its destination, on its way out its source.
    pub translations: Vec<CompiledRule>,
    pub tables: Vec<Arc<AddressTable>>,
    /// Those of the tables that have names.
    pub named_tables: Vec<NamedTable>,
    /// The first are the default.
    pub timeouts: Vec<Timeouts>,
    /// What happens to packets that no rule decides about.
    pub pass_by_default: bool,
    /// Interfaces that are not filtered.
    pub skip: InterfaceSet,
    /// From so many states on timeouts shrink; at the second number they are zero (pf's `adaptive`). Zeros switch it off.
    pub adaptive: (u32, u32),
}

impl RuleSetParts {
    /// A set without rules.
    pub fn new(language: Language) -> Self {
        let timeouts = match language {
            Language::Pf => Timeouts::default(),
            Language::Ipfw => Timeouts::ipfw(),
        };
        RuleSetParts {
            language,
            rules: Vec::new(),
            translations: Vec::new(),
            tables: Vec::new(),
            named_tables: Vec::new(),
            timeouts: vec![timeouts],
            pass_by_default: language == Language::Pf,
            skip: InterfaceSet::default(),
            adaptive: (0, 0),
        }
    }

    /// Takes over the addresses of tables that the text of the rules leaves open, from the rules that were in force before.
    pub fn keep_tables(&mut self, before: &RuleSet) {
        for table in self.named_tables.iter().filter(|table| !table.is_given) {
            let kept = before.table(&table.name).filter(|kept| kept.kind == table.kind);
            let kept = kept.and_then(|kept| before.tables.get(usize::from(kept.id.0)));
            if let (Some(kept), Some(place)) = (kept, self.tables.get_mut(usize::from(table.id.0))) {
                *place = Arc::clone(kept);
            }
        }
    }
}

/// Why parts make no rule set. Rules are counted from zero, translations after the filter rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    #[error("rule {rule}: no table has the number {table}; define it before the rule")]
    UnknownTable { rule: usize, table: u16 },
    #[error("rule {rule}: no timeouts have the number {timeouts}; add them to the rule set")]
    UnknownTimeouts { rule: usize, timeouts: u16 },
    #[error("rule {rule}: it skips to rule {target}, which is not a later one")]
    SkipsBack { rule: usize, target: u32 },
    #[error("rule {rule}: the tag {tag}; pf's states have room for tags up to {}", CompiledRule::HIGHEST_TAG)]
    TagTooLarge { rule: usize, tag: u16 },
    #[error("the rule set has no timeouts; the first of them are the default")]
    NoTimeouts,
    #[error("{0} kinds of timeouts, at most 256 are possible; use fewer different ones")]
    TooManyTimeouts(usize),
    #[error("a timeout of {0} ms; at most {MAX_TIMEOUT} are possible")]
    TimeoutTooLong(u32),
}

/// A compiled rule set.
#[derive(Clone, Debug)]
pub struct RuleSet {
    pub(super) language: Language,
    pub(super) filter: RuleList,
    pub(super) translations: RuleList,
    pub(super) tables: Vec<Arc<AddressTable>>,
    pub(super) touched_tables: TouchedTables,
    named_tables: Vec<NamedTable>,
    pub(super) timeouts: Vec<Timeouts>,
    pub(super) pass_by_default: bool,
    pub(super) skip: InterfaceSet,
    pub(super) adaptive: (u32, u32),
    /// No state expires before so many milliseconds after its last packet.
    pub(super) shortest: u32,
    /// Whether rules distinguish first fragments from whole packets.
    pub(super) tests_fragments: bool,
}

impl RuleSet {
    /// Compiles a rule set.
    pub fn new(parts: RuleSetParts) -> Result<Self, CompileError> {
        check_timeouts(&parts)?;
        for (rule, compiled) in parts.rules.iter().chain(&parts.translations).enumerate() {
            check_rule(&parts, rule, compiled)?;
        }
        let tests_fragments = parts.rules.iter().chain(&parts.translations).any(tests_fragments);
        let rules = parts.translations.iter().chain(&parts.rules);
        let touched_tables = TouchedTables::new(parts.language == Language::Pf, rules, &parts.tables);
        let filter = RuleList::new(parts.rules);
        Ok(RuleSet {
            shortest: parts.timeouts.iter().map(Timeouts::shortest).min().unwrap_or(0),
            language: parts.language,
            filter,
            translations: RuleList::new(parts.translations),
            tables: parts.tables,
            touched_tables,
            named_tables: parts.named_tables,
            timeouts: parts.timeouts,
            pass_by_default: parts.pass_by_default,
            skip: parts.skip,
            adaptive: parts.adaptive,
            tests_fragments,
        })
    }

    /// The filter rules.
    pub fn rules(&self) -> &[CompiledRule] {
        self.filter.rules()
    }

    /// Whether the rules without states decide in the same way about all whole UDP packets, or all plain TCP segments, of a
    /// flow.
    #[inline]
    pub(super) fn is_constant(&self, protocol: u8) -> bool {
        self.filter.is_all_constant(protocol) && self.translations.is_all_constant(protocol)
    }

    /// The bytes by which packets are classified.
    pub fn classifier_bytes(&self) -> usize {
        self.filter.classifier_bytes() + self.translations.classifier_bytes()
    }

    /// The rules of translation.
    pub fn translations(&self) -> &[CompiledRule] {
        self.translations.rules()
    }

    /// Whose semantics it has.
    pub fn language(&self) -> Language {
        self.language
    }

    /// The tables, in the order of their numbers.
    pub fn tables(&self) -> &[Arc<AddressTable>] {
        &self.tables
    }

    /// For how many milliseconds a source stays after its last state, by the timeouts with this number.
    pub(crate) fn source_timeout(&self, timeouts: u16) -> u32 {
        self.timeouts.get(usize::from(timeouts)).unwrap_or(&self.timeouts[0]).source
    }

    /// The tables that have names.
    pub fn named_tables(&self) -> &[NamedTable] {
        &self.named_tables
    }

    /// The table with this name.
    pub fn table(&self, name: &str) -> Option<&NamedTable> {
        self.named_tables.iter().find(|table| table.name == name)
    }

    /// The same rules with other tables in place of some. All else is shared or copied, so this takes as long as copying the
    /// rules.
    pub fn with_tables(&self, tables: impl IntoIterator<Item = (TableId, Arc<AddressTable>)>) -> Self {
        let mut changed = self.clone();
        for (id, table) in tables {
            changed
                .tables
                .get_mut(usize::from(id.0))
                .into_iter()
                .for_each(|place| *place = Arc::clone(&table));
        }
        let rules = changed.translations.rules().iter().chain(changed.filter.rules());
        changed.touched_tables = TouchedTables::new(changed.language == Language::Pf, rules, &changed.tables);
        changed
    }

    /// What a worker needs to go on with this rule set after `old`.
    pub fn adoption(&self, old: &RuleSet) -> Adoption {
        let former: Vec<_> = old.counted().map(FormerRule::new).collect();
        Adoption {
            map: Arc::new(RuleMap { rules: successors(self.counted(), &former) }),
            counters: Arc::new(RuleCounters::new(self.counted_rules())),
            rule_states: vec![0; self.counted_rules()],
            rule_sources: vec![0; self.counted_rules()],
            former_maps: Adoption::room(),
        }
    }

    /// The rules that have counters, in the order of their numbers.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &CompiledRule> {
        self.filter.rules().iter().chain(self.translations.rules())
    }

    /// How many rules have counters: the filter rules, then those of translation.
    pub fn counted_rules(&self) -> usize {
        self.filter.rules().len() + self.translations.rules().len()
    }
}

fn check_timeouts(parts: &RuleSetParts) -> Result<(), CompileError> {
    if parts.timeouts.is_empty() {
        return Err(CompileError::NoTimeouts);
    }
    if parts.timeouts.len() > 256 {
        return Err(CompileError::TooManyTimeouts(parts.timeouts.len()));
    }
    let longest = parts.timeouts.iter().map(Timeouts::longest).max().unwrap_or(0);
    if longest > MAX_TIMEOUT { Err(CompileError::TimeoutTooLong(longest)) } else { Ok(()) }
}

fn check_rule(parts: &RuleSetParts, rule: usize, compiled: &CompiledRule) -> Result<(), CompileError> {
    let unknown = |id: TableId| usize::from(id.0) >= parts.tables.len();
    if let Some(table) = tables_of(compiled).find(|id| unknown(*id)) {
        return Err(CompileError::UnknownTable { rule, table: table.0 });
    }
    let timeouts = compiled.state.as_ref().map_or(0, |state| state.timeouts);
    if usize::from(timeouts) >= parts.timeouts.len() {
        return Err(CompileError::UnknownTimeouts { rule, timeouts });
    }
    if parts.language == Language::Pf && compiled.tag > CompiledRule::HIGHEST_TAG {
        return Err(CompileError::TagTooLarge { rule, tag: compiled.tag });
    }
    match &compiled.action {
        RuleAction::SkipTo(target) if *target as usize <= rule => {
            Err(CompileError::SkipsBack { rule, target: *target })
        }
        _ => Ok(()),
    }
}

fn tables_of(rule: &CompiledRule) -> impl Iterator<Item = TableId> {
    let overload = rule.state.as_ref().and_then(overload);
    let tests = rule.clauses.iter().flat_map(|clause: &Clause| &clause.0).map(|literal| &literal.test);
    tests.filter_map(table_of).chain(overload)
}

fn overload(state: &StateOptions) -> Option<TableId> {
    state.source.as_ref().and_then(|limits: &SourceLimits| limits.overload)
}

fn tests_fragments(rule: &CompiledRule) -> bool {
    let mut literals = rule.clauses.iter().flat_map(|clause| &clause.0);
    literals.any(|literal| matches!(literal.test, Test::Fragment(FragmentTest::Any)))
}
