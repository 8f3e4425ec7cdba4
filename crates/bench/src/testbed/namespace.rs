//! Network namespaces of our own, gone when their value is.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::error::TestbedError;

/// A network namespace with a name that no other process uses.
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes a namespace; `role` distinguishes those of one process.
    pub fn new(role: &str) -> Result<Namespace, TestbedError> {
        let name = format!("fv{}{role}", std::process::id());
        ip(&["netns", "add", &name], "")?;
        Ok(Namespace { name })
    }

    /// Its name, for `ip -n`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip -batch` in it.
    pub fn batch(&self, lines: &str) -> Result<(), TestbedError> {
        ip(&["-n", &self.name, "-batch", "-"], lines)
    }

    /// Does some work in it, in a thread that ends with the work.
    pub fn within<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, TestbedError> + Send,
    ) -> Result<T, TestbedError> {
        let entered = || {
            let file = File::open(format!("/run/netns/{}", self.name))?;
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(())
        };
        thread::scope(|scope| {
            let done = scope.spawn(|| {
                entered()
                    .map_err(|error: io::Error| TestbedError::Enter { name: self.name.clone(), error })?;
                work()
            });
            done.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// The index of a device in it.
    pub fn device(&self, name: &str) -> Result<u32, TestbedError> {
        self.within(|| {
            let socket =
                rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None);
            let index = socket.and_then(|socket| rustix::net::netdevice::name_to_index(&socket, name));
            index.map_err(|error| TestbedError::Device { name: name.into(), error: error.into() })
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The kernel removes its devices with it. A failure cannot be reported from here.
        let _ = ip(&["netns", "delete", &self.name], "");
    }
}

/// Runs `ip` with something to read.
fn ip(arguments: &[&str], input: &str) -> Result<(), TestbedError> {
    run("ip", arguments, input)
}

/// Runs a command to its end; what it has to say against it is the error.
pub fn run(program: &'static str, arguments: &[&str], input: &str) -> Result<(), TestbedError> {
    let failed = |error: String| TestbedError::Command { program, arguments: arguments.join(" "), error };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let mut pipe = child.stdin.take();
    let done = thread::scope(|scope| {
        // Written beside reading its errors, or both could wait for the other. A command that stops reading reports the reason on standard error.
        scope.spawn(move || pipe.as_mut().map(|pipe| pipe.write_all(input.as_bytes())));
        child.wait_with_output()
    });
    let done = done.map_err(|error| failed(error.to_string()))?;
    let message = String::from_utf8_lossy(&done.stderr);
    if done.status.success() {
        Ok(())
    } else {
        Err(failed(message.lines().take(3).collect::<Vec<_>>().join("; ")))
    }
}
