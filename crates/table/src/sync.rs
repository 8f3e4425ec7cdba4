//! The atomics and reference counts of what is published between threads: the standard ones, or loom's while its model
//! checker explores every interleaving.

#[cfg(loom)]
pub(crate) use loom::sync::Arc;
#[cfg(not(loom))]
pub(crate) use std::sync::Arc;
