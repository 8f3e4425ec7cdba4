//! The control socket: one JSON request a line, one JSON answer a line.
//!
//! ```text
//! {"routes":{"address":"192.0.2.1"}}      {"ok":{...}}
//! "interfaces"                            {"ok":[...]}
//! "nonsense"                              {"error":"..."}
//! ```
//!
//! [`server`] answers by way of a [`Responder`], [`client`] asks; what passes between them is in [`request`] and
//! [`status`].

pub mod client;
pub mod request;
pub mod server;
pub mod status;

use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A longer request is refused; a longer answer never is made.
const LONGEST_REQUEST: u64 = 64 << 10;
const LONGEST_ANSWER: u64 = 64 << 20;

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// What was asked for.
    Ok(Value),
    /// Why there is none, and what to do.
    Error(String),
}

/// Where the router of that name listens.
pub fn default_path(name: &str) -> PathBuf {
    PathBuf::from("/run/fullview").join(format!("{name}.sock"))
}

/// The next line without its end; `None` when the other side has closed. A line cut short by that is none.
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
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    output.write_all(&line)
}
