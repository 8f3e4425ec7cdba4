//! Threads that tests stop, while the other threads of their process go on.

use std::fs;

use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// A stopped thread of another process. It goes on when this value is dropped, or the thread that made it ends.
pub struct StoppedThread(Pid);

impl StoppedThread {
    /// Stops a thread of this name.
    pub fn of(process: u32, name: &str) -> StoppedThread {
        let thread = find(process, name).unwrap_or_else(|| panic!("process {process} has no thread {name}"));
        ptrace::seize(thread, Options::empty()).unwrap();
        ptrace::interrupt(thread).unwrap();
        waitpid(thread, Some(WaitPidFlag::__WALL)).unwrap();
        StoppedThread(thread)
    }
}

impl Drop for StoppedThread {
    fn drop(&mut self) {
        // Fails if the process has ended.
        let _ = ptrace::detach(self.0, None);
    }
}

fn find(process: u32, name: &str) -> Option<Pid> {
    let mut threads = fs::read_dir(format!("/proc/{process}/task")).unwrap().map(Result::unwrap);
    let is_named = |thread: &fs::DirEntry| {
        fs::read_to_string(thread.path().join("comm")).is_ok_and(|found| found.trim_end() == name)
    };
    let thread = threads.find(is_named)?;
    thread.file_name().to_str()?.parse().ok().map(Pid::from_raw)
}
