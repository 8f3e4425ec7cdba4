//! Commands that make a test bed.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;

use super::error::TestbedError;

/// Runs a command to its end; what it has to say against it is the error.
pub fn run(program: &'static str, arguments: &[&str], input: &str) -> Result<(), TestbedError> {
    output(program, arguments, input).map(drop)
}

/// The same, and returns its standard output. Ctrl-C does not reach it, or it would leave behind what it is to remove.
pub fn output(program: &'static str, arguments: &[&str], input: &str) -> Result<String, TestbedError> {
    let failed = |error: String| TestbedError::Command { program, arguments: arguments.join(" "), error };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
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
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    } else {
        Err(failed(message.lines().take(3).collect::<Vec<_>>().join("; ")))
    }
}
