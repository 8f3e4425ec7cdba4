//! When the memory of a replaced part may be written again: once no reader holds a view from before it was replaced.
//!
//! A structure that patches itself by small copies gives its readers a *view*, an `Arc` that carries a [`Token`]. A
//! part that a patch replaces is [retired](Reclaim::retire): readers of this view may be in it. With
//! [`Reclaim::turn`] the structure begins a new view, which cannot reach what was retired before, and readers change
//! to it when they fetch the FIB again. Readers never wait and write only the count of their `Arc`; a reader that
//! keeps an old view delays reuse and nothing else.

use std::collections::VecDeque;

use crate::sync::Arc;

/// A view holds a token for as long as a reader can read through it.
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

    /// The token that the newest view must hold.
    pub(crate) fn token(&self) -> Arc<Token> {
        Arc::clone(&self.newest.0)
    }

    /// Takes a part to which no path from the root leads any more; lookups that began before may still be in it.
    pub(crate) fn retire(&mut self, part: T) {
        self.newest.1.push(part);
    }

    /// The number of parts retired since the newest view began.
    pub(crate) fn retired(&self) -> usize {
        self.newest.1.len()
    }

    /// Begins a new view, which must hold the token returned. Parts retired so far can be used again once the views
    /// before it have ended.
    pub(crate) fn turn(&mut self) -> Arc<Token> {
        let before = std::mem::replace(&mut self.newest, (Arc::new(Token), Vec::new()));
        self.older.push_back(before);
        self.token()
    }

    /// Returns the parts that no reader can read any more: those whose view, and every view before it, has ended.
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
        assert!(parts.reclaim().is_empty(), "both earlier views still have readers");
        drop(second);
        assert!(
            parts.reclaim().is_empty(),
            "readers of the first view may have reached what the second retired"
        );
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

    /// Two parts, one of which the root leads to. The cells are empty: loom reports a write during a read.
    struct TwoParts {
        root: AtomicUsize,
        parts: [(UnsafeCell<()>, AtomicU32); 2],
    }

    impl TwoParts {
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

    struct TestView {
        store: Arc<TwoParts>,
        _token: Arc<Token>,
    }

    #[test]
    fn no_part_is_written_while_a_reader_is_in_it() {
        loom::model(|| {
            let part = |value| (UnsafeCell::new(()), AtomicU32::new(value));
            let store = Arc::new(TwoParts { root: AtomicUsize::new(0), parts: [part(1), part(0)] });
            let mut parts = Reclaim::new();
            let view = |token| Arc::new(TestView { store: Arc::clone(&store), _token: token });
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
