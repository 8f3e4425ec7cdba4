//! Tests that run in a network namespace, one at a time.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::current::sysctl;
use crate::namespace;
use crate::requirements::may_run;

/// A test holds this lock while it runs in a namespace or starts a program. Between `fork` and `exec`, a new process has
/// copies of all file descriptors of this process. What another test closes in that time stays open for longer: sockets
/// with their queues, BPF links of interfaces.
static STARTS: Mutex<()> = Mutex::new(());

/// Does `work` while no other test starts a program through this function or runs in [`in_namespace`].
pub fn while_no_program_starts<T>(work: impl FnOnce() -> T) -> T {
    let _held = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Runs a test in a new network namespace if this process can make one. Such tests run one after another. The namespace
/// is removed with the thread that runs the test, also after a panic.
pub fn in_namespace(test: impl FnOnce() + Send) {
    if !may_run(&["ip"]) {
        return;
    }
    let in_a_thread = || {
        namespace::enter_new().expect("a new namespace");
        // With IPv6, every interface that comes up sends frames of its own.
        sysctl("ipv6/conf/default/disable_ipv6", "1");
        test();
    };
    let result = while_no_program_starts(|| thread::scope(|scope| scope.spawn(in_a_thread).join()));
    result.unwrap_or_else(|panic| resume_unwind(panic));
}
