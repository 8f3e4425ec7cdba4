//! Restricts the process to the system calls that a router needs. Any other fails with EPERM, and the router goes on
//! forwarding.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

/// Calls of the standard library and the router: files, memory, time, threads, signals, sockets.
const ALLOWED: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_lseek,
    libc::SYS_ftruncate,
    libc::SYS_close,
    libc::SYS_openat,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_fcntl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_ioctl,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_mlock,
    libc::SYS_futex,
    libc::SYS_membarrier,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_get_priority_max,
    libc::SYS_getcpu,
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getrandom,
    libc::SYS_getrlimit,
    libc::SYS_prlimit64,
    libc::SYS_prctl,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_signalfd4,
    libc::SYS_tgkill,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_pipe2,
    libc::SYS_eventfd2,
    libc::SYS_ppoll,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    #[cfg(feature = "bpf")]
    libc::SYS_bpf,
    // Older calls for the same purposes, which the C library still uses on this architecture.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_arch_prctl,
];

/// Restricts this thread and those that it starts.
pub fn restrict() -> Result<(), seccompiler::Error> {
    filters()?.iter().try_for_each(|filter| apply_filter(filter))
}

/// Makes two filters; the kernel applies both. One allows the calls that are needed. The other refuses `clone3`, so that the
/// C library starts threads with `clone`: a filter sees the flags of `clone`, while those of `clone3` lie in memory, where
/// no filter can look.
fn filters() -> Result<[BpfProgram; 2], BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let unknown = SeccompAction::Errno(libc::ENOSYS as u32);
    let older = SeccompFilter::new(clone3, SeccompAction::Allow, unknown, arch)?;
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let allowed = SeccompFilter::new(rules()?, refused, SeccompAction::Allow, arch)?;
    Ok([older.try_into()?, allowed.try_into()?])
}

fn rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    // `clone` may start threads, but no processes.
    let thread = libc::CLONE_THREAD as u64;
    let condition =
        SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(thread), thread)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![condition])?]);
    // The other filter refuses `clone3`.
    rules.insert(libc::SYS_clone3, Vec::new());
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::thread;

    #[test]
    fn calls_of_profilers_and_debuggers_are_not_allowed() {
        let theirs = [
            libc::SYS_perf_event_open,
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
        ];
        assert!(!ALLOWED.iter().any(|call| theirs.contains(call)));
    }

    /// Only the thread that the test starts is restricted.
    #[test]
    fn a_restricted_thread_starts_no_program_and_works_otherwise() {
        let restricted = thread::spawn(|| {
            restrict().unwrap();
            let refused = |error: std::io::Error| error.raw_os_error() == Some(libc::EPERM);
            assert!(refused(Command::new("/bin/true").exec()), "execve");
            assert!(refused(Command::new("/bin/true").spawn().unwrap_err()), "fork, vfork");
            assert!(refused(std::fs::create_dir("/proc/fullview").unwrap_err()), "mkdir");
            assert!(refused(std::fs::hard_link("/proc/a", "/proc/b").unwrap_err()), "link");
            // A router needs threads, files and sockets.
            assert_eq!(thread::spawn(|| 7).join().unwrap(), 7);
            assert!(std::fs::read_to_string("/proc/thread-self/status").unwrap().contains("Seccomp:\t2"));
            tempfile::tempfile().unwrap().set_len(1).unwrap();
            std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        });
        restricted.join().unwrap();
    }
}
