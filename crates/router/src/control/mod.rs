//! The control socket: one JSON request a line, one JSON answer a line.
//!
//! ```text
//! {"path":{"address":"192.0.2.1","table":254}}    {"ok":{...}}
//! "interfaces"                            {"ok":[...]}
//! "nonsense"                              {"error":"..."}
//! ```
//!
//! [`server`] answers through a `Responder`, [`client`] asks. [`request`], [`status`], [`filter`] and [`takeover`] have what
//! passes between them.

pub mod client;
pub mod filter;
pub mod request;
pub mod server;
pub mod status;
pub mod table_key;
pub mod takeover;

use std::io::{self, BufRead, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A longer request is refused. No answer is longer than the other limit.
const MAX_REQUEST: u64 = 64 << 10;
const MAX_ANSWER: u64 = 64 << 20;
/// A longer reason is cut: it may repeat what a client sent, or a line of a file.
const MAX_REASON: usize = 2048;

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The answer's value.
    Ok(Value),
    /// Why the request was refused, and what to do.
    Error(String),
}

impl Answer {
    /// An error whose text has a bounded length.
    pub fn refused(mut reason: String) -> Answer {
        if reason.len() > MAX_REASON {
            reason.truncate(reason.floor_char_boundary(MAX_REASON));
            reason.push('…');
        }
        Answer::Error(reason)
    }
}

const FOLDER: &str = "/run/fullview";

/// The path of the socket of the router with that name.
pub fn default_path(name: &str) -> PathBuf {
    PathBuf::from(FOLDER).join(format!("{name}.sock"))
}

/// The path of the socket of the only router that has a name. The error names the routers if there are several.
pub fn only_path() -> Result<PathBuf, String> {
    only_path_in(FOLDER)
}

fn only_path_in(folder: &str) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut sockets: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    sockets.retain(|path| path.extension().is_some_and(|extension| extension == "sock"));
    // A router that was killed leaves its socket behind.
    if sockets.len() > 1 {
        sockets.retain(|path| !is_deserted(path));
    }
    sockets.sort();
    match &sockets[..] {
        [only] => Ok(only.clone()),
        [] => Err(format!(
            "no router has a socket in {folder}; is `fullview forward --name` running? --control names another socket"
        )),
        several => {
            let names =
                several.iter().filter_map(|path| path.file_stem()?.to_str()).collect::<Vec<_>>().join(", ");
            Err(format!("several routers are running: {names}; choose one with --name"))
        }
    }
}

/// Whether no process listens on the socket any more.
fn is_deserted(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Reads the next line, without its end. `None` when the other side has closed the connection, even if it did so within a
/// line.
fn read_line(input: &mut impl BufRead, longest: u64) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    input.by_ref().take(longest + 1).read_until(b'\n', &mut line)?;
    match line.pop() {
        Some(b'\n') => Ok(Some(line)),
        Some(_) if line.len() as u64 >= longest => {
            Err(io::Error::new(io::ErrorKind::InvalidData, format!("a line is longer than {longest} bytes")))
        }
        _ => Ok(None),
    }
}

fn write_line(output: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    output.write_all(&line(value)?)
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_only_router_is_found_beside_sockets_of_killed_routers() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let only = || only_path_in(folder.path().to_str().unwrap());
        assert!(only().unwrap_err().contains("no router has a socket"));
        let listen = |name: &str| UnixListener::bind(path(name)).unwrap();
        drop((listen("killed.sock"), listen("killed-too.sock")));
        let _running = listen("running.sock");
        assert_eq!(only(), Ok(path("running.sock")));
        let _another = listen("another.sock");
        assert!(only().unwrap_err().contains("several routers are running: another, running;"));
    }

    #[test]
    fn a_reason_is_cut_between_characters() {
        let short = Answer::refused("no such interface".into());
        assert_eq!(short, Answer::Error("no such interface".into()));
        let Answer::Error(long) = Answer::refused("é".repeat(MAX_REASON)) else { panic!() };
        assert_eq!((long.chars().count(), long.ends_with("é…")), (MAX_REASON / 2 + 1, true));
    }
}
