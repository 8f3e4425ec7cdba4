//! What the writer stores while readers read, on cache lines of its own.

/// A value on a cache line of its own, and not on the neighbouring line that a processor may fetch together with it.
///
/// Readers load the addresses of their tables from one line at every batch. If the writer stored to that line at every
/// change (a counter of its own, or the reference count of the surrounding `Arc`), each batch would wait for the other
/// core. So such counters are wrapped in this type, and the types behind an `Arc` that readers load have the same
/// alignment.
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);
