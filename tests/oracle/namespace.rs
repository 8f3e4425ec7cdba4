//! Network namespaces without names: each lives in a thread of this process and is gone with it, however it ends.

use std::io;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;

type Job = Box<dyn FnOnce() + Send>;

/// A namespace. Sockets opened and programs started by its jobs stay in it.
pub struct Namespace {
    thread: i32,
    jobs: Sender<Job>,
}

impl Namespace {
    /// A new namespace with nothing but a loopback interface that is down; needs root.
    pub fn new() -> io::Result<Namespace> {
        let (jobs, todo) = channel::<Job>();
        let (ready, created) = channel();
        thread::spawn(move || {
            let entered = unshare(CloneFlags::CLONE_NEWNET).map(|()| gettid().as_raw());
            let entered = ready.send(entered).is_ok() && entered.is_ok();
            todo.iter().take_while(|_| entered).for_each(|job| job());
        });
        let thread = created.recv().map_err(io::Error::other)??;
        Ok(Namespace { thread, jobs })
    }

    /// By which number `ip link set netns` finds it.
    pub fn number(&self) -> i32 {
        self.thread
    }

    /// Runs something inside, and waits for it.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        self.jobs
            .send(Box::new(move || {
                done.send(work()).ok();
            }))
            .expect("the namespace's thread waits for jobs");
        result.recv().expect("a job inside a namespace panicked: its message is above")
    }

    /// Runs `ip` inside.
    pub fn ip(&self, arguments: &str) {
        self.command(&format!("ip {arguments}"));
    }

    /// Runs a program inside, written as one line, which has to succeed; what it printed.
    pub fn command(&self, line: &str) -> String {
        let line = line.to_owned();
        self.run(move || {
            let mut words = line.split_whitespace();
            let mut command = Command::new(words.next().expect("a program"));
            let output = command.args(words).output().unwrap_or_else(|error| panic!("{line}: {error}"));
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).expect("text")
        })
    }

    /// Sets a variable below /proc/sys/net inside.
    pub fn sysctl(&self, name: &str, value: &str) {
        let (path, value) = (format!("/proc/sys/net/{name}"), value.to_owned());
        self.run(move || std::fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}")));
    }
}
