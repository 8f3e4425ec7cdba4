//! Type names that mean one thing in their crate, and `impl` blocks of a type that stand together.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::Visit;
use syn::{Item, Type};

use crate::code;
use crate::rules::Exceptions;
use crate::tree::Tree;

/// In how many files the `impl` blocks of one type may stand.
const FILES: usize = 3;

/// A place as `file:line`.
type Places = BTreeSet<String>;

/// The names that more than one module of a crate gives to a type, one line each.
pub fn repeated(package: &str, trees: &[Tree], exceptions: &mut Exceptions<'_>) -> Vec<String> {
    let mut names = BTreeMap::<String, BTreeMap<(usize, &[String]), String>>::new();
    for (number, tree) in trees.iter().enumerate() {
        for module in 0..tree.modules.len() {
            for (name, place) in defined(tree, module) {
                // Two files that stand for each other by `cfg` are one module.
                let path = &tree.modules[module].path[..];
                names.entry(name).or_default().entry((number, path)).or_insert(place);
            }
        }
    }
    let repeated = names.into_iter().filter(|(_, modules)| modules.len() > 1);
    let unargued = repeated.filter(|(name, _)| !exceptions.allow(&format!("{package} {name}")));
    unargued
        .map(|(name, modules)| {
            let places: Vec<_> = modules.into_values().collect();
            format!("{package}: {} types are named {name}: {}", places.len(), places.join(", "))
        })
        .collect()
}

fn defined(tree: &Tree, module: usize) -> Vec<(String, String)> {
    let mut types = Types::default();
    own_items(tree, module).for_each(|item| types.visit_item(item));
    let place = |line: usize| format!("{}:{line}", tree.modules[module].file.display());
    types.named.into_iter().map(|(name, line)| (name, place(line))).collect()
}

/// The types whose `impl` blocks stand in too many files, one line each.
pub fn scattered(package: &str, tree: &Tree) -> Vec<String> {
    let mut files = BTreeMap::<(usize, String), Places>::new();
    for module in 0..tree.modules.len() {
        let mut types = Types::default();
        own_items(tree, module).for_each(|item| types.visit_item(item));
        for path in types.implemented {
            let target = tree.resolve(module, &path).filter(|target| target.item);
            if let (Some(target), Some(name)) = (target, path.last()) {
                let file = tree.modules[module].file.display().to_string();
                files.entry((target.module, name.clone())).or_default().insert(file);
            }
        }
    }
    let many = files.into_iter().filter(|(_, files)| files.len() > FILES);
    many.map(|((_, name), files)| {
        let list: Vec<_> = files.iter().map(String::as_str).collect();
        format!("{package}: `impl {name}` in {} files, at most {FILES}: {}", files.len(), list.join(", "))
    })
    .collect()
}

fn own_items(tree: &Tree, module: usize) -> impl Iterator<Item = &Item> {
    tree.modules[module].items.iter().filter(|item| !matches!(item, Item::Mod(_)))
}

/// The types that items define, also inside functions, and those that they implement something for.
#[derive(Default)]
struct Types {
    named: Vec<(String, usize)>,
    implemented: Vec<Vec<String>>,
}

impl<'a> Visit<'a> for Types {
    fn visit_item(&mut self, item: &'a Item) {
        if code::is_test(code::attributes(item)) {
            return;
        }
        if let Some(name) = code::type_name(item) {
            self.named.push((name.to_string(), name.span().start().line));
        }
        syn::visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'a syn::ImplItem) {
        if !code::is_test(code::member_attributes(item)) {
            syn::visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_impl(&mut self, block: &'a syn::ItemImpl) {
        if let Type::Path(path) = &*block.self_ty {
            let names = path.path.segments.iter().map(|segment| segment.ident.to_string());
            self.implemented.push(names.collect());
        }
        syn::visit::visit_item_impl(self, block);
    }
}
