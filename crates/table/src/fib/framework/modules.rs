//! The modules of a table: the algorithms among which the framework chooses.

use std::sync::Arc;

use crate::addr::Address;
use crate::fib::Algorithm;

/// An algorithm, as modules are handed around.
pub type Module<A> = &'static dyn Algorithm<A>;

/// Several, which many tables may share.
pub type Modules<A> = Arc<[Module<A>]>;

/// Why the modules of a table stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModuleError {
    /// No module of that name is attached.
    #[error("no module of that name is attached to this table; attach it first")]
    Unknown,
    /// A module of that name is there already.
    #[error("a module of that name is attached already; detach it first")]
    Known,
    /// A table is not left without lookup.
    #[error("it is the only module of this table; attach another first")]
    Last,
}

/// The modules and one more.
pub(super) fn with<A: Address>(modules: &[Module<A>], module: Module<A>) -> Result<Modules<A>, ModuleError> {
    let known = modules.iter().any(|known| known.name() == module.name());
    if known { Err(ModuleError::Known) } else { Ok(modules.iter().copied().chain([module]).collect()) }
}

/// The modules but one, and that one.
pub(super) fn without<A: Address>(
    modules: &[Module<A>],
    module: &str,
) -> Result<(Modules<A>, Module<A>), ModuleError> {
    let (gone, rest): (Vec<_>, Vec<_>) = modules.iter().copied().partition(|known| known.name() == module);
    let gone = gone.first().ok_or(ModuleError::Unknown)?;
    if rest.is_empty() { Err(ModuleError::Last) } else { Ok((rest.into(), *gone)) }
}
