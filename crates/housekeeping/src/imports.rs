//! Which file of a crate imports from which other one.

use std::collections::BTreeMap;

use syn::Item;
use syn::visit::Visit;

use crate::code;
use crate::tree::{Tree, Use};

/// The first place where one module names something that another one defines.
#[derive(Clone, Debug)]
pub struct Import {
    pub line: usize,
    pub path: String,
}

pub type Imports = BTreeMap<(usize, usize), Import>;

/// Imports between modules with files of their own. A module that exports what its descendants define does not import
/// it, as little as `mod` does, as long as its own code does not use it.
pub fn of(tree: &Tree) -> Imports {
    let mut found = Imports::new();
    for module in 0..tree.modules.len() {
        tree.modules[module].uses.iter().for_each(|import| add_use(tree, module, import, &mut found));
        let mut paths = Paths::default();
        let items = &tree.modules[module].items;
        items.iter().filter(|item| !matches!(item, Item::Mod(_))).for_each(|item| paths.visit_item(item));
        for (path, line) in paths.found {
            if let Some(target) = tree.resolve(module, &path).filter(|target| target.item) {
                add(tree, module, target.module, line, &path, &mut found);
            }
        }
    }
    found
}

fn add_use(tree: &Tree, module: usize, import: &Use, found: &mut Imports) {
    let Some(target) = tree.resolve(module, &import.path) else { return };
    let own = import.exported && tree.is_below(target.module, tree.modules[module].home);
    // A module that is only named is imported where its items are used: each of those paths is followed by itself.
    let named_only = !target.item && !import.exported && import.name.is_some();
    if !own && !named_only {
        add(tree, module, target.module, import.line, &import.path, found);
    }
}

fn add(tree: &Tree, from: usize, to: usize, line: usize, path: &[String], found: &mut Imports) {
    let (from, to) = (tree.modules[from].home, tree.modules[to].home);
    if from != to {
        found.entry((from, to)).or_insert(Import { line, path: path.join("::") });
    }
}

/// Collects every path in code that is not test code.
#[derive(Default)]
struct Paths {
    found: Vec<(Vec<String>, usize)>,
}

impl<'a> Visit<'a> for Paths {
    fn visit_item(&mut self, item: &'a Item) {
        if !code::is_test(code::attributes(item)) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'a syn::ImplItem) {
        if !code::is_test(code::member_attributes(item)) {
            syn::visit::visit_impl_item(self, item);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.leading_colon.is_none()
            && let Some(first) = path.segments.first()
        {
            let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.found.push((names, first.ident.span().start().line));
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        self.visit_path(&call.path);
        code::token_paths(call.tokens.clone(), &mut self.found);
    }

    fn visit_item_use(&mut self, _: &'a syn::ItemUse) {}

    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}

    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}
}
