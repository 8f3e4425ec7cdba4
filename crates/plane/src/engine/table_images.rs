//! The memory images of a table's two FIBs.

use std::sync::Arc;

use fullview_table::Rib;
use fullview_table::fib::btree6::Btree6;
use fullview_table::fib::dir18::Dir18;
use fullview_table::fib::image::{Image, Section};
use fullview_table::fib::{Algorithm, CompileError, Fib};
use fullview_table::simd::IsaChoice;

use super::error::EngineError;
use crate::view::TableReaders;

/// The algorithm that has to serve IPv4 tables, for [`fullview_table::fib::framework::Attachment::force`].
pub const INET_ALGORITHM: &str = "dir18";
/// The algorithm that has to serve IPv6 tables.
pub const INET6_ALGORITHM: &str = "btree6";

/// The memory images of both FIBs.
pub(super) struct TableImages<'t> {
    pub index: Section<'t>,
    leaves: Section<'t>,
    pub leaf_bytes: usize,
    pub roots: Section<'t>,
    branches: Section<'t>,
    leaves6: Section<'t>,
}

impl<'t> TableImages<'t> {
    fn new(inet: &'t dyn Fib<u32>, inet6: &'t dyn Fib<u128>) -> Result<TableImages<'t>, EngineError> {
        let missing = |family, wanted| EngineError::Algorithm { family, wanted };
        let Some(Image::Dir18 { index, leaves, leaf_bytes }) = inet.image() else {
            return Err(missing("IPv4", INET_ALGORITHM));
        };
        let Some(Image::Btree6 { roots, branches, leaves: leaves6 }) = inet6.image() else {
            return Err(missing("IPv6", INET6_ALGORITHM));
        };
        Ok(TableImages { index, leaves, leaf_bytes, roots, branches, leaves6 })
    }

    /// The sections in arrays that all tables share.
    pub fn shared(&self) -> [Section<'t>; 3] {
        [self.leaves, self.branches, self.leaves6]
    }
}

/// FIBs without routes.
pub(super) struct EmptyTables {
    inet: Arc<dyn Fib<u32>>,
    inet6: Arc<dyn Fib<u128>>,
}

impl EmptyTables {
    pub fn new() -> Result<EmptyTables, CompileError> {
        let (inet, inet6) = (
            Dir18(IsaChoice::Best).compile(&Rib::default())?,
            Btree6(IsaChoice::Best).compile(&Rib::default())?,
        );
        Ok(EmptyTables { inet: inet.fib(), inet6: inet6.fib() })
    }

    /// Calls `work` with the current images of a table. A table without routes has no algorithm and no memory yet; the
    /// empty FIBs stand for it.
    pub fn with<T>(
        &self,
        TableReaders { inet, inet6 }: &TableReaders,
        work: impl FnOnce(&TableImages<'_>) -> T,
    ) -> Result<T, EngineError> {
        inet.with(|inet| {
            inet6.with(|inet6| {
                let inet = if inet.footprint().total() == 0 { &*self.inet } else { inet };
                let inet6 = if inet6.footprint().total() == 0 { &*self.inet6 } else { inet6 };
                Ok(work(&TableImages::new(inet, inet6)?))
            })
        })
    }
}
