//! Which module defines what a path names.

use crate::tree::Tree;

/// How many imports a name may pass through: a name that leads back to itself ends here.
const STEPS: usize = 10;

/// What a path leads to. `item` is false where it names the module as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    pub module: usize,
    pub item: bool,
}

impl Tree {
    pub fn resolve(&self, from: usize, path: &[String]) -> Option<Target> {
        self.follow(from, path, true, STEPS)
    }

    /// `whole` is false where something follows the path, so that its last name is a module if there is a choice.
    fn follow(&self, from: usize, path: &[String], whole: bool, steps: usize) -> Option<Target> {
        let steps = steps.checked_sub(1)?;
        let (first, mut rest) = path.split_first()?;
        let mut here = match first.as_str() {
            "crate" => Target { module: 0, item: false },
            "self" => Target { module: from, item: false },
            "super" => Target { module: self.modules[from].parent, item: false },
            name => self.look_up(from, name, whole && rest.is_empty(), steps)?,
        };
        while let Some((name, after)) = rest.split_first().filter(|_| !here.item) {
            rest = after;
            here = match name.as_str() {
                "super" => Target { module: self.modules[here.module].parent, item: false },
                "self" => here,
                // What is not found was made by a macro of that module.
                name => self
                    .look_up(here.module, name, whole && rest.is_empty(), steps)
                    .unwrap_or(Target { module: here.module, item: true }),
            };
        }
        Some(here)
    }

    fn look_up(&self, module: usize, name: &str, last: bool, steps: usize) -> Option<Target> {
        let scope = &self.modules[module];
        let child = scope.children.get(name).map(|&module| Target { module, item: false });
        if let Some(child) = child.filter(|_| !last) {
            return Some(child);
        }
        if scope.names.contains_key(name) {
            return Some(Target { module, item: true });
        }
        self.imported(module, name, last, steps).or(child)
    }

    fn imported(&self, module: usize, name: &str, last: bool, steps: usize) -> Option<Target> {
        let scope = &self.modules[module];
        let mut named =
            scope.uses.iter().filter(|import| import.name.as_deref() == Some(name) && import.path != [name]);
        let globs =
            || scope.globs.iter().find_map(|&glob| self.look_up(glob, name, last, steps.checked_sub(1)?));
        named.find_map(|import| self.follow(module, &import.path, last, steps)).or_else(globs)
    }

    /// The modules whose names a glob brings into this one, by paths that need no other glob.
    pub fn globs(&self, module: usize) -> Vec<usize> {
        let globs = self.modules[module].uses.iter().filter(|import| import.name.is_none());
        let targets = globs.filter_map(|import| self.follow(module, &import.path, false, STEPS));
        targets.filter(|target| !target.item && target.module != module).map(|target| target.module).collect()
    }
}
