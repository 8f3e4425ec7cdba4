//! What the router may still do once it is set up: fewer privileges, and only the system calls it needs.
//!
//! All of it is put on before the first thread starts, the first packet comes in and the first message of the kernel is
//! read, so that every thread has it and whatever comes from outside meets it.

mod calls;
mod user;

use anyhow::Context;

use crate::config::Confine;

/// Confines this thread and all that it will start. What needs more has to be open already.
pub fn confine(options: &Confine) -> anyhow::Result<()> {
    user::drop_privileges(options.user.as_deref()).context("privileges cannot be dropped")?;
    if options.seccomp {
        calls::restrict()
            .context("system calls cannot be restricted; confine.seccomp = false goes without")?;
    }
    Ok(())
}
