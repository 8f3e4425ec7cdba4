//! Capabilities and users.

use anyhow::{Context, anyhow};
use nix::unistd::{Gid, Uid, User, initgroups, setresgid, setresuid};
use rustix::process::{parent_process_death_signal, set_parent_process_death_signal};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_keep_capabilities, set_no_new_privs,
};

/// What the running router needs: its packet sockets are opened again when a link comes back, the kernel is asked to
/// resolve neighbours, and with the feature `bpf` the classifier is loaded and its maps filled.
fn needed() -> CapabilitySet {
    let bpf = CapabilitySet::BPF | CapabilitySet::PERFMON | CapabilitySet::IPC_LOCK;
    let always = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
    if cfg!(feature = "bpf") { always | bpf } else { always }
}

/// Keeps what is needed of what there is. Nothing that is started later can gain more.
pub fn drop_privileges(user: Option<&str>) -> anyhow::Result<()> {
    if let Some(name) = user {
        set_keep_capabilities(true)?;
        become_user(name)?;
    }
    let kept = capabilities(None)?.permitted & needed();
    set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() },
    )?;
    set_no_new_privs(true)?;
    Ok(())
}

/// All threads of the process change with this one.
fn become_user(name: &str) -> anyhow::Result<()> {
    let user = User::from_name(name).with_context(|| format!("user {name}"))?;
    let user =
        user.ok_or_else(|| anyhow!("there is no user {name}; make it with `useradd --system {name}`"))?;
    let (uid, gid): (Uid, Gid) = (user.uid, user.gid);
    let named = std::ffi::CString::new(name)?;
    // Whoever started us may want us to end with it, which the kernel forgets when the user changes.
    let signal = parent_process_death_signal()?;
    initgroups(&named, gid).context("its groups")?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    Ok(set_parent_process_death_signal(signal)?)
}
