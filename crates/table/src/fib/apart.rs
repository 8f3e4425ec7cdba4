//! What the writer stores while readers read, apart from what they read.

/// On a cache line of its own, and away from the one that a processor may fetch with it.
///
/// Readers take the addresses of their tables from one line at every batch. If the writer stores to that line at every
/// change, be it a count of its own or that of an `Arc` before it, each batch waits for the other core. So counts stand in
/// here, and what an `Arc` leads readers to has this alignment too.
#[repr(align(128))]
pub(super) struct Apart<T>(pub(super) T);
