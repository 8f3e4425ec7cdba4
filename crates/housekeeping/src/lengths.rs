//! How long functions are, from the signature to the closing brace, outside test code.

use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, Item, Signature, Visibility};

use crate::code;
use crate::rules::Exceptions;
use crate::tree::Tree;

const MEDIAN: usize = 8;
const SHORT: usize = 15;
const SHORT_PERCENT: usize = 80;
const LONG: usize = 60;

pub struct Function {
    pub name: String,
    pub file: String,
    pub line: usize,
    pub lines: usize,
}

pub fn of(tree: &Tree) -> Vec<Function> {
    tree.modules.iter().filter(|module| !module.items.is_empty()).flat_map(of_module).collect()
}

fn of_module(module: &crate::tree::Module) -> Vec<Function> {
    let mut lengths = Lengths { file: module.file.display().to_string(), found: Vec::new() };
    module
        .items
        .iter()
        .filter(|item| !matches!(item, Item::Mod(_)))
        .for_each(|item| lengths.visit_item(item));
    lengths.found
}

/// The figures of all functions of the workspace.
pub struct Figures {
    count: usize,
    median: usize,
    short: usize,
}

impl Figures {
    pub fn of(functions: &[Function]) -> Self {
        let mut lines: Vec<usize> = functions.iter().map(|function| function.lines).collect();
        lines.sort_unstable();
        let short = lines.iter().filter(|&&lines| lines <= SHORT).count();
        Self { count: lines.len(), median: lines.get(lines.len() / 2).copied().unwrap_or(0), short }
    }

    pub fn is_good(&self) -> bool {
        self.median <= MEDIAN && self.short * 100 >= self.count * SHORT_PERCENT
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let share = self.short as f64 * 100.0 / self.count.max(1) as f64;
        write!(f, "{} functions: the median has {} lines (at most {MEDIAN}), ", self.count, self.median)?;
        write!(f, "{share:.1} % have at most {SHORT} (at least {SHORT_PERCENT} %)")
    }
}

/// The functions above the limit that the rules do not argue for, one line each.
pub fn too_long(package: &str, functions: &[Function], exceptions: &mut Exceptions<'_>) -> Vec<String> {
    let long = functions.iter().filter(|function| function.lines > LONG);
    let unargued = long.filter(|function| !exceptions.allow(&format!("{package} {}", function.name)));
    unargued
        .map(|Function { name, file, line, lines }| {
            format!(
                "{file}:{line}: {name} has {lines} lines, at most {LONG} without a reason in `long_functions`"
            )
        })
        .collect()
}

struct Lengths {
    file: String,
    found: Vec<Function>,
}

impl Lengths {
    fn add(&mut self, visibility: &Visibility, signature: &Signature, body: &Block) {
        let begin = signature.span().start().line;
        let line = match visibility {
            Visibility::Inherited => begin,
            public => public.span().start().line,
        };
        let lines = body.brace_token.span.close().end().line + 1 - line;
        self.found.push(Function { name: signature.ident.to_string(), file: self.file.clone(), line, lines });
    }
}

impl<'a> Visit<'a> for Lengths {
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

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.add(&function.vis, &function.sig, &function.block);
        syn::visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.add(&function.vis, &function.sig, &function.block);
        syn::visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.add(&Visibility::Inherited, &function.sig, body);
        }
        syn::visit::visit_trait_item_fn(self, function);
    }
}
