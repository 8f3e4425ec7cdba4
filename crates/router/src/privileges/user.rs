//! Drops capabilities, and changes the user.

use nix::unistd::{Gid, Uid, User, initgroups, setresgid, setresuid};
use rustix::process::{
    Resource, Rlimit, parent_process_death_signal, set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_keep_capabilities, set_no_new_privs,
};

use super::PrivilegeError;

/// The capabilities that a running router needs: it opens packet sockets again when a link comes back, asks the kernel to
/// resolve neighbours, and with the feature `bpf` loads the classifier and fills its maps. Programs are loaded late too, so no
/// capability for them can be dropped after the start: the classifier's when the first interface of their kind comes (`--wait`,
/// AF_XDP), those of the other engines when interfaces or VRFs change, and when packets are watched.
fn needed() -> CapabilitySet {
    let bpf = CapabilitySet::BPF | CapabilitySet::PERFMON | CapabilitySet::IPC_LOCK;
    let always = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
    if cfg!(feature = "bpf") { always | bpf } else { always }
}

/// Keeps those of the present capabilities that are needed. No thread that is started later can gain more.
pub fn drop_privileges(user: Option<&str>) -> Result<(), PrivilegeError> {
    let for_real_time = if allow_real_time() { CapabilitySet::empty() } else { CapabilitySet::SYS_NICE };
    if let Some(name) = user {
        set_keep_capabilities(true)?;
        become_user(name)?;
    }
    let kept = capabilities(None)?.permitted & (needed() | for_real_time);
    set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() },
    )?;
    set_no_new_privs(true)?;
    Ok(())
}

/// Lets threads run in real time without a capability, at the lowest priority only. Returns whether this process
/// has the right to set that limit.
fn allow_real_time() -> bool {
    setrlimit(Resource::Rtprio, Rlimit { current: Some(1), maximum: Some(1) }).is_ok()
}

/// The user of this name.
pub fn find(name: &str) -> Result<User, PrivilegeError> {
    let found = User::from_name(name);
    let found = found.map_err(|source| PrivilegeError::FindUser { name: name.to_owned(), source })?;
    found.ok_or_else(|| PrivilegeError::NoUser(name.to_owned()))
}

/// Changes the user of the whole process.
fn become_user(name: &str) -> Result<(), PrivilegeError> {
    let user = find(name)?;
    let (uid, gid): (Uid, Gid) = (user.uid, user.gid);
    let named = std::ffi::CString::new(name)?;
    // The process that started this one may have asked for a signal at its own end, which the kernel forgets when the user
    // changes.
    let signal = parent_process_death_signal()?;
    initgroups(&named, gid).map_err(PrivilegeError::Groups)?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    Ok(set_parent_process_death_signal(signal)?)
}
