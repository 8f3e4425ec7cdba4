//! The module tree of one crate, read from its files without test code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::visit::Visit;
use syn::{Item, ItemMod, UseTree};

use crate::code;

/// A module and the names it knows. The root of the crate has index 0.
pub struct Module {
    pub path: Vec<String>,
    pub file: PathBuf,
    pub parent: usize,
    /// The module that the file belongs to: the module itself, unless it stands inline in another one's file.
    pub home: usize,
    pub children: BTreeMap<String, usize>,
    pub names: BTreeMap<String, usize>,
    pub uses: Vec<Use>,
    /// The modules that globs import all names of.
    pub globs: Vec<usize>,
    pub items: Vec<Item>,
}

/// One leaf of a `use`. A glob has no name.
pub struct Use {
    pub name: Option<String>,
    pub path: Vec<String>,
    pub line: usize,
    pub exported: bool,
}

pub struct Tree {
    pub modules: Vec<Module>,
}

impl Tree {
    /// Reads the tree below a root file; files are named relative to `base`.
    pub fn read(base: &Path, root: &Path) -> Result<Self> {
        let mut tree = Self { modules: Vec::new() };
        let folder = root.parent().unwrap_or(base).to_owned();
        let items = parse(base, root)?;
        tree.add(base, Place { file: root, folder, path: Vec::new(), parent: 0, inline: false }, items)?;
        let globs: Vec<_> = (0..tree.modules.len()).map(|module| tree.globs(module)).collect();
        tree.modules.iter_mut().zip(globs).for_each(|(module, globs)| module.globs = globs);
        Ok(tree)
    }

    fn add(&mut self, base: &Path, place: Place<'_>, items: Vec<Item>) -> Result<usize> {
        let index = self.modules.len();
        let home = if place.inline { self.modules[place.parent].home } else { index };
        let file = place.file.strip_prefix(base).unwrap_or(place.file).to_owned();
        let (path, parent) = (place.path.clone(), place.parent);
        let (children, globs) = (BTreeMap::new(), Vec::new());
        let (names, uses) = (names(&items), uses(&items));
        self.modules.push(Module {
            path,
            file,
            parent,
            home,
            children,
            names,
            uses,
            globs,
            items: Vec::new(),
        });
        for item in &items {
            if let Item::Mod(module) = item {
                let child = self.add_child(base, &place, index, module)?;
                // Two modules of one name, of which `cfg` chooses one, count as one: the imports of both are the first's.
                let first = *self.modules[index].children.entry(module.ident.to_string()).or_insert(child);
                self.modules[child].home = self.modules[first].home;
            }
        }
        self.modules[index].items = items;
        Ok(index)
    }

    fn add_child(
        &mut self,
        base: &Path,
        place: &Place<'_>,
        parent: usize,
        module: &ItemMod,
    ) -> Result<usize> {
        let name = module.ident.to_string();
        let path = [&place.path[..], std::slice::from_ref(&name)].concat();
        let folder = place.folder.join(&name);
        if let Some((_, items)) = &module.content {
            let items = items.iter().filter(|item| !code::is_test(code::attributes(item))).cloned().collect();
            return self.add(base, Place { file: place.file, folder, path, parent, inline: true }, items);
        }
        let file = match (code::file_of(module), place.file.parent()) {
            (Some(file), Some(beside)) => beside.join(file),
            _ => file_of_child(&place.folder, &name),
        };
        let items = parse(base, &file)?;
        self.add(base, Place { file: &file, folder, path, parent, inline: false }, items)
    }

    pub fn is_below(&self, module: usize, above: usize) -> bool {
        self.chain(module).contains(&above)
    }

    /// The modules with files of their own from the root down to this one.
    pub fn chain(&self, module: usize) -> Vec<usize> {
        let mut chain = vec![self.modules[module].home];
        while let Some(&last) = chain.last().filter(|&&last| last != 0) {
            chain.push(self.modules[self.modules[last].parent].home);
        }
        chain.reverse();
        chain
    }
}

struct Place<'a> {
    file: &'a Path,
    /// Where the files of child modules are.
    folder: PathBuf,
    path: Vec<String>,
    parent: usize,
    inline: bool,
}

fn file_of_child(folder: &Path, name: &str) -> PathBuf {
    let flat = folder.join(format!("{name}.rs"));
    if flat.is_file() { flat } else { folder.join(name).join("mod.rs") }
}

fn parse(base: &Path, file: &Path) -> Result<Vec<Item>> {
    let shown = file.strip_prefix(base).unwrap_or(file).display();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
    let parsed = syn::parse_file(&text).with_context(|| format!("cannot parse {shown}"))?;
    Ok(parsed.items.into_iter().filter(|item| !code::is_test(code::attributes(item))).collect())
}

fn names(items: &[Item]) -> BTreeMap<String, usize> {
    items.iter().filter_map(code::name).map(|name| (name.to_string(), name.span().start().line)).collect()
}

/// All `use` declarations of a module, those inside functions too, without those of inline modules.
fn uses(items: &[Item]) -> Vec<Use> {
    let mut found = Uses(Vec::new());
    items.iter().filter(|item| !matches!(item, Item::Mod(_))).for_each(|item| found.visit_item(item));
    found.0
}

struct Uses(Vec<Use>);

impl<'a> Visit<'a> for Uses {
    fn visit_item(&mut self, item: &'a Item) {
        if !code::is_test(code::attributes(item)) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        let exported = !matches!(item.vis, syn::Visibility::Inherited);
        if item.leading_colon.is_none() {
            self.leaves(&item.tree, &mut Vec::new(), exported);
        }
    }
}

impl Uses {
    fn leaves(&mut self, tree: &UseTree, path: &mut Vec<String>, exported: bool) {
        match tree {
            UseTree::Path(step) => {
                path.push(step.ident.to_string());
                self.leaves(&step.tree, path, exported);
                path.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.leaves(tree, path, exported)),
            UseTree::Name(leaf) => self.leaf(path, &leaf.ident, &leaf.ident, exported),
            UseTree::Rename(leaf) => self.leaf(path, &leaf.ident, &leaf.rename, exported),
            UseTree::Glob(glob) => {
                let line = glob.star_token.spans[0].start().line;
                self.0.push(Use { name: None, path: path.clone(), line, exported });
            }
        }
    }

    fn leaf(&mut self, path: &[String], target: &syn::Ident, name: &syn::Ident, exported: bool) {
        let mut path = path.to_vec();
        let name = match target.to_string() {
            own if own == "self" => {
                path.last().filter(|_| name == target).cloned().unwrap_or(name.to_string())
            }
            other => {
                path.push(other);
                name.to_string()
            }
        };
        self.0.push(Use { name: Some(name), path, line: target.span().start().line, exported });
    }
}
