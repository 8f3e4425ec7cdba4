//! Numbers for the names of tables, tags and interfaces.

use std::collections::BTreeMap;

use crate::address::Address;
use crate::interfaces::{FilterInterface, Interfaces};
use crate::name_number::name_number;
use crate::pf::config::{PfConfig, PfSetting, TableDefinition};
use crate::rule::{CompiledRule, InterfaceSet, NamedTable, TableId, TableKind};

pub struct PfNames<'a> {
    pub interfaces: &'a Interfaces,
    definitions: Vec<&'a TableDefinition>,
    tables: Vec<String>,
    tags: BTreeMap<u16, String>,
}

impl<'a> PfNames<'a> {
    pub fn new(config: &'a PfConfig, interfaces: &'a Interfaces) -> PfNames<'a> {
        let mut names =
            PfNames { interfaces, definitions: Vec::new(), tables: Vec::new(), tags: BTreeMap::new() };
        names.define(config);
        names
    }

    /// Tables of files that `load anchor` names have their names in common with the other tables.
    fn define(&mut self, config: &'a PfConfig) {
        for setting in &config.settings {
            if let PfSetting::Table(table) = setting {
                self.table(&table.name);
                self.definitions.push(table);
            }
        }
        config.loaded.iter().for_each(|anchor| self.define(&anchor.config));
    }

    pub fn table(&mut self, name: &str) -> TableId {
        TableId(index(&mut self.tables, name))
    }

    /// A number for a tag; zero is no tag. It follows from the name, so that states keep theirs across a reload, unless two
    /// names collide.
    pub fn tag(&mut self, name: &str) -> u16 {
        let mut number = name_number(name, CompiledRule::HIGHEST_TAG);
        while self.tags.get(&number).is_some_and(|taken| taken != name) {
            number = number % CompiledRule::HIGHEST_TAG + 1;
        }
        self.tags.entry(number).or_insert_with(|| name.to_owned());
        number
    }

    /// What defines each table; of several definitions the last one counts.
    pub fn tables(&self) -> impl Iterator<Item = Option<&'a TableDefinition>> {
        let defines =
            |name: &String| self.definitions.iter().rev().find(|table| table.name == *name).copied();
        self.tables.iter().map(defines)
    }

    /// The tables as the rules that use them know them.
    pub fn named_tables(&self) -> Vec<NamedTable> {
        let named = |((number, name), definition): ((u16, &String), Option<&TableDefinition>)| NamedTable {
            name: name.clone(),
            id: TableId(number),
            kind: TableKind::Addresses,
            is_constant: definition.is_some_and(|table| table.constant),
            is_given: definition.is_some_and(|table| !table.sources.is_empty()),
        };
        (0..).zip(&self.tables).zip(self.tables()).map(named).collect()
    }

    pub fn table_names(&self) -> Vec<String> {
        self.tables.clone()
    }

    pub fn tag_names(&self) -> BTreeMap<u16, String> {
        self.tags.clone()
    }

    /// The interface or group with a name, or with `any` all but loopback interfaces.
    pub fn interface_set(&self, name: &str) -> InterfaceSet {
        if name == "any" {
            let others = self.interfaces.0.iter().filter(|interface| !is_loopback(interface));
            return others.map(|interface| interface.number).collect();
        }
        self.interfaces.matching(name).map(|interface| interface.number).collect()
    }
}

/// The index of a name, which is added if it is new. Rule sets have far fewer than 65,536 names.
fn index(names: &mut Vec<String>, name: &str) -> u16 {
    let known = names.iter().position(|known| known == name);
    let index = known.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    index as u16
}

fn is_loopback(interface: &FilterInterface) -> bool {
    let loopback = |address: Address| std::net::IpAddr::from(address).is_loopback();
    interface.addresses.iter().any(|(address, _)| loopback(*address))
}
