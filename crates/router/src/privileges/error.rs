//! Why a process could not be restricted.

use std::ffi::NulError;

use nix::errno::Errno as NixErrno;
use rustix::io::Errno;

#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    #[error("privileges cannot be dropped")]
    Drop(#[source] Box<PrivilegeError>),
    #[error("system calls cannot be restricted; confine.seccomp = false goes without")]
    Seccomp(#[from] seccompiler::Error),
    #[error("there is no user {0}; make it with `useradd --system {0}`")]
    NoUser(String),
    #[error("user {name}")]
    FindUser { name: String, source: NixErrno },
    #[error("{0}")]
    UserName(#[from] NulError),
    #[error("its groups")]
    Groups(#[source] NixErrno),
    #[error("{0}")]
    ChangeUser(#[from] NixErrno),
    #[error("{0}")]
    Capabilities(#[from] Errno),
}
