//! The modules of a table: the algorithms among which the framework chooses.

use std::sync::Arc;

use crate::addr::Address;
use crate::fib::Algorithm;

/// An algorithm as the framework uses it.
pub type Module<A> = &'static dyn Algorithm<A>;

/// The modules of a table, which many tables may share.
pub type Modules<A> = Arc<[Module<A>]>;

/// Why the modules of a table could not be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModuleError {
    /// No module of that name is attached.
    #[error("no module of that name is attached to this table; attach it first")]
    Unknown,
    /// A module of that name is attached already.
    #[error("a module of that name is attached already; detach it first")]
    Known,
    /// It is the only module: no table may be without one.
    #[error("it is the only module of this table; attach another first")]
    Last,
}

/// Adds one module.
pub(super) fn with<A: Address>(modules: &[Module<A>], module: Module<A>) -> Result<Modules<A>, ModuleError> {
    let known = modules.iter().any(|known| known.name() == module.name());
    if known { Err(ModuleError::Known) } else { Ok(modules.iter().copied().chain([module]).collect()) }
}

/// Removes one module, and returns it too.
pub(super) fn without<A: Address>(
    modules: &[Module<A>],
    module: &str,
) -> Result<(Modules<A>, Module<A>), ModuleError> {
    let (gone, rest): (Vec<_>, Vec<_>) = modules.iter().copied().partition(|known| known.name() == module);
    let gone = gone.first().ok_or(ModuleError::Unknown)?;
    if rest.is_empty() { Err(ModuleError::Last) } else { Ok((rest.into(), *gone)) }
}
