//! The reference count of data published between threads: the standard one, or loom's while its model checker explores
//! every interleaving.

#[cfg(loom)]
pub(crate) use loom::sync::Arc;
#[cfg(not(loom))]
pub(crate) use std::sync::Arc;
