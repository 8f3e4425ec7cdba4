//! What to load, and how to complete it.

use crate::addr::Family;

use super::next_hops::NextHopModel;

/// What to load, and how to complete it.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Keep only the routes of this family; the others are counted in
    /// [`LoadReport::skipped`](super::LoadReport::skipped).
    pub family: Option<Family>,
    /// The next hops of routes that carry none.
    pub next_hops: NextHopModel,
    /// Refuse feeds with more routes than this, both families together. This bounds the memory.
    pub max_routes: usize,
    /// Called now and then with the number of bytes read from the file (as compressed) and their total, which is 0 if
    /// it is not known in advance (a pipe).
    pub on_progress: Option<&'a dyn Fn(u64, u64)>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { family: None, next_hops: NextHopModel::default(), max_routes: 1 << 24, on_progress: None }
    }
}
