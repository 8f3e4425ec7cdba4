//! What to load, and how to complete it.

use crate::addr::Family;

use super::next_hops::NextHopModel;

/// What to load, and how to complete it.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Keep only the routes of this family; the others are counted in [`LoadReport::skipped`].
    pub family: Option<Family>,
    /// The next hops of routes that carry none.
    pub next_hops: NextHopModel,
    /// Refuse feeds with more routes than this, both families together: the bound on memory.
    pub max_routes: usize,
    /// Told now and then how many bytes of how many have been read from the file (as compressed). The total is 0
    /// where it is not known in advance (a pipe).
    pub on_progress: Option<&'a dyn Fn(u64, u64)>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { family: None, next_hops: NextHopModel::default(), max_routes: 1 << 24, on_progress: None }
    }
}
