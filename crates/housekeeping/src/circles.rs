//! Circles of imports at each level of the module tree.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::imports::{Import, Imports};
use crate::tree::Tree;

/// The imports between the parts of one module: its own file and its children with all that is below them.
pub struct Level {
    pub module: usize,
    edges: BTreeMap<usize, BTreeMap<usize, Step>>,
}

/// The import that stands for an edge between two parts, with the file it is in.
#[derive(Clone)]
struct Step {
    from: usize,
    import: Import,
}

/// Parts that import each other, and the shortest way around.
pub struct Circle {
    pub members: Vec<usize>,
    pub chain: Vec<usize>,
}

pub fn levels(tree: &Tree, imports: &Imports) -> Vec<Level> {
    let mut levels = BTreeMap::<usize, Level>::new();
    for (&(from, to), import) in imports {
        let (mine, other) = (tree.chain(from), tree.chain(to));
        let common = mine.iter().zip(&other).take_while(|(a, b)| a == b).count();
        let module = mine[common - 1];
        let part = |chain: &[usize]| chain.get(common).copied().unwrap_or(module);
        let level = levels.entry(module).or_insert_with(|| Level { module, edges: BTreeMap::new() });
        let step = Step { from, import: import.clone() };
        level.edges.entry(part(&mine)).or_default().entry(part(&other)).or_insert(step);
    }
    levels.into_values().collect()
}

impl Level {
    /// Circles among the children alone.
    pub fn among_siblings(&self) -> Vec<Circle> {
        self.circles(|part| part != self.module)
    }

    /// The circle that the module's own file is part of.
    pub fn with_parent(&self) -> Option<Circle> {
        self.circles(|_| true).into_iter().find(|circle| circle.members.contains(&self.module)).map(
            |circle| {
                let inside = circle.members.iter().copied().collect();
                Circle { chain: self.shortest(self.module, &inside).unwrap_or_default(), ..circle }
            },
        )
    }

    fn circles(&self, counts: impl Fn(usize) -> bool) -> Vec<Circle> {
        let parts: BTreeSet<usize> = self.edges.keys().copied().filter(|&part| counts(part)).collect();
        let mut left = parts.clone();
        let mut found = Vec::new();
        while let Some(part) = left.pop_first() {
            let ahead = self.reached(part, &parts);
            let mutual = ahead.iter().filter(|&&other| self.reached(other, &parts).contains(&part));
            let members: BTreeSet<usize> = mutual.copied().collect();
            left.retain(|other| !members.contains(other));
            if members.contains(&part) {
                let chains = members.iter().filter_map(|&start| self.shortest(start, &members));
                let chain = chains.min_by_key(Vec::len).unwrap_or_default();
                found.push(Circle { members: members.into_iter().collect(), chain });
            }
        }
        found
    }

    fn next(&self, part: usize, inside: &BTreeSet<usize>) -> impl Iterator<Item = usize> {
        self.edges
            .get(&part)
            .into_iter()
            .flat_map(BTreeMap::keys)
            .copied()
            .filter(|next| inside.contains(next))
    }

    fn reached(&self, part: usize, inside: &BTreeSet<usize>) -> BTreeSet<usize> {
        let (mut seen, mut open) = (BTreeSet::new(), vec![part]);
        while let Some(part) = open.pop() {
            open.extend(self.next(part, inside).filter(|&next| seen.insert(next)));
        }
        seen
    }

    /// The shortest way from a part back to itself.
    fn shortest(&self, start: usize, inside: &BTreeSet<usize>) -> Option<Vec<usize>> {
        let (mut before, mut open) = (BTreeMap::new(), VecDeque::from([start]));
        while let Some(part) = open.pop_front() {
            for next in self.next(part, inside) {
                if next == start {
                    let back = std::iter::successors(Some(part), |part| before.get(part).copied());
                    let mut chain: Vec<usize> = back.collect();
                    chain.reverse();
                    return Some(chain);
                }
                if next != start && !before.contains_key(&next) {
                    before.insert(next, part);
                    open.push_back(next);
                }
            }
        }
        None
    }

    /// The chain as lines, each with the place of an import.
    pub fn describe(&self, tree: &Tree, circle: &Circle) -> Vec<String> {
        let around = circle.chain.iter().zip(circle.chain.iter().cycle().skip(1));
        around.map(|(&from, &to)| self.line(tree, from, to)).collect()
    }

    /// Every import inside a circle, one for each pair of parts.
    pub fn inside(&self, tree: &Tree, circle: &Circle) -> Vec<String> {
        let members: BTreeSet<usize> = circle.members.iter().copied().collect();
        let pairs = members.iter().flat_map(|&from| self.next(from, &members).map(move |to| (from, to)));
        pairs.map(|(from, to)| self.line(tree, from, to)).collect()
    }

    fn line(&self, tree: &Tree, from: usize, to: usize) -> String {
        let step = &self.edges[&from][&to];
        let (line, path) = (step.import.line, &step.import.path);
        let file = tree.modules[step.from].file.display();
        format!("{} -> {}  at {file}:{line}: {path}", name(tree, from), name(tree, to))
    }
}

pub fn name(tree: &Tree, module: usize) -> String {
    let path = &tree.modules[module].path;
    if path.is_empty() { "(root)".to_owned() } else { path.join("::") }
}
