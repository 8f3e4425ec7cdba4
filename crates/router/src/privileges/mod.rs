//! Restricts the process to the privileges and system calls that a running router needs.
//!
//! The restrictions are set before the first thread starts, the first packet comes in and the first message of the kernel
//! is read, so that every thread has them and all input from outside meets them.

mod calls;
mod error;
mod user;

pub use error::PrivilegeError;

/// Checks that a user exists.
pub fn check_user(name: &str) -> Result<(), PrivilegeError> {
    user::find(name).map(drop)
}

/// Restricts this thread and all that it will start. What needs more privileges must be open already. `user` is the user
/// to run as, if not the present one.
pub fn confine(user: Option<&str>, seccomp: bool) -> Result<(), PrivilegeError> {
    user::drop_privileges(user).map_err(|error| match error {
        PrivilegeError::NoUser(_) => error,
        other => PrivilegeError::Drop(Box::new(other)),
    })?;
    if seccomp {
        calls::restrict()?;
    }
    Ok(())
}
