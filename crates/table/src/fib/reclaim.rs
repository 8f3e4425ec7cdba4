//! When the memory of a replaced part may be written again: once no reader holds a view from before it was replaced.
//!
//! A structure that patches itself by small copies hands its readers a *view*, an `Arc` that carries a [`Token`]. A
//! part that a patch replaces is [retired](Reclaim::retire): readers of this view may be in it. With
//! [`Reclaim::turn`] the structure begins a new view, which cannot reach what was retired before, and readers change
//! to it when they fetch the FIB again. Readers never wait and write nothing but the count of their `Arc`; one that
//! keeps an old view delays reuse and nothing else.

use std::collections::VecDeque;

use crate::sync::Arc;

/// Held by a view for as long as somebody can read through it.
pub(crate) struct Token;

/// Parts that were replaced, in the order of the views that may still read them.
pub(crate) struct Reclaim<T> {
    /// The newest view's token, and what was retired since it began.
    newest: (Arc<Token>, Vec<T>),
    /// Views before it, oldest first.
    older: VecDeque<(Arc<Token>, Vec<T>)>,
}

impl<T> Reclaim<T> {
    pub(crate) fn new() -> Self {
        Reclaim { newest: (Arc::new(Token), Vec::new()), older: VecDeque::new() }
    }

    /// For the newest view to hold.
    pub(crate) fn token(&self) -> Arc<Token> {
        Arc::clone(&self.newest.0)
    }

    /// No path from the root leads to `part` any more; readers that are under way may be in it.
    pub(crate) fn retire(&mut self, part: T) {
        self.newest.1.push(part);
    }

    /// Parts retired since the newest view began: what [`Self::turn`] would put on its way to be used again.
    pub(crate) fn retired(&self) -> usize {
        self.newest.1.len()
    }

    /// Begins a new view, which must hold the token returned.
    pub(crate) fn turn(&mut self) -> Arc<Token> {
        let before = std::mem::replace(&mut self.newest, (Arc::new(Token), Vec::new()));
        self.older.push_back(before);
        self.token()
    }

    /// Parts that nobody can read any more: those retired before a view that has ended, as have all views before it.
    pub(crate) fn reclaim(&mut self) -> Vec<T> {
        let mut free = Vec::new();
        while let Some((token, parts)) = self.older.front_mut() {
            // `get_mut`, not `strong_count`: it synchronises with the last reader's drop, whose reads are then over.
            if Arc::get_mut(token).is_none() {
                break;
            }
            free.append(parts);
            self.older.pop_front();
        }
        free
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_free_once_every_view_that_could_reach_it_has_ended() {
        let mut parts = Reclaim::new();
        let first = parts.token();
        parts.retire('a');
        let second = parts.turn();
        parts.retire('b');
        let third = parts.turn();
        assert!(parts.reclaim().is_empty(), "both earlier views are read");
        drop(second);
        assert!(parts.reclaim().is_empty(), "the first view may have gone on to what the second retired");
        drop(first);
        assert_eq!(parts.reclaim(), ['a', 'b']);
        parts.retire('c');
        assert_eq!(parts.retired(), 1);
        assert!(parts.reclaim().is_empty(), "the third view has not been replaced");
        drop(third);
        drop(parts.turn());
        assert_eq!(parts.reclaim(), ['c']);
    }
}

/// The real code under loom: a part is written again only when no reader can be in it.
#[cfg(all(test, loom))]
mod interleavings {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Mutex;
    use loom::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
    use loom::thread;

    /// Two parts, one of which is the root's. The cells are empty: loom reports a write while somebody reads.
    struct Store {
        root: AtomicUsize,
        parts: [(UnsafeCell<()>, AtomicU32); 2],
    }

    impl Store {
        fn lookup(&self) -> u32 {
            let (access, value) = &self.parts[self.root.load(Ordering::Acquire)];
            access.with(|_| value.load(Ordering::Relaxed))
        }

        fn write(&self, part: usize, new: u32) {
            let (access, value) = &self.parts[part];
            access.with_mut(|_| value.store(new, Ordering::Relaxed));
            self.root.store(part, Ordering::Release);
        }
    }

    struct View {
        store: Arc<Store>,
        _token: Arc<Token>,
    }

    #[test]
    fn no_part_is_written_while_a_reader_is_in_it() {
        loom::model(|| {
            let part = |value| (UnsafeCell::new(()), AtomicU32::new(value));
            let store = Arc::new(Store { root: AtomicUsize::new(0), parts: [part(1), part(0)] });
            let mut parts = Reclaim::new();
            let view = |token| Arc::new(View { store: Arc::clone(&store), _token: token });
            let published = Arc::new(Mutex::new(view(parts.token())));
            let reader = {
                let published = Arc::clone(&published);
                thread::spawn(move || {
                    let fetch = || Arc::clone(&published.lock().unwrap());
                    [fetch().store.lookup(), fetch().store.lookup()]
                })
            };
            store.write(1, 2);
            parts.retire(0);
            let next = view(parts.turn());
            *published.lock().unwrap() = next;
            for free in parts.reclaim() {
                store.write(free, 3);
            }
            let seen = reader.join().unwrap();
            assert!(seen.is_sorted() && seen.iter().all(|value| (1..=3).contains(value)), "{seen:?}");
        });
    }
}
