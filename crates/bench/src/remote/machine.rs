//! What an agent asks its own machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use fullview_lab::host::Host;
use serde_json::Value;

use super::protocol::{InterfaceFacts, NodeFacts};
use crate::rates::may_run_in_real_time;
use crate::served::Hello;

/// Why a machine cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("ip {line}: {said}; this needs root and iproute2")]
    Ip { line: String, said: String },
    #[error("ethtool {line}: {said}; this needs root and ethtool")]
    Ethtool { line: String, said: String },
    #[error("/run/fullview-testbed: {0}; changes are recorded there before they are made")]
    Journal(#[source] io::Error),
}

/// Runs `ip` with a line of words.
pub fn ip(line: &str) -> Result<String, MachineError> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    run("ip", &words).map_err(|said| MachineError::Ip { line: line.to_owned(), said })
}

pub fn ethtool(words: &[&str]) -> Result<String, MachineError> {
    run("ethtool", words).map_err(|said| MachineError::Ethtool { line: words.join(" "), said })
}

/// What a program prints, or what it says about why it failed.
fn run(program: &str, words: &[&str]) -> Result<String, String> {
    let done = Command::new(program).args(words).output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr).trim().to_owned()) }
}

/// What `ip` shows, as JSON.
pub fn ip_json(line: &str) -> Result<Value, MachineError> {
    let shown = ip(&format!("-json {line}"))?;
    // It prints nothing if nothing matches.
    Ok(serde_json::from_str(&shown).unwrap_or_default())
}

/// This machine.
pub fn facts() -> Result<NodeFacts, MachineError> {
    let links = ip_json("link show")?;
    let interfaces = links.as_array().into_iter().flatten().filter_map(interface).collect();
    Ok(NodeFacts {
        build: Hello::of_this_program().build,
        host: Host::observe(Path::new("/")),
        interfaces,
        real_time: may_run_in_real_time().ok(),
    })
}

/// An Ethernet interface, by what `ip` says of it.
fn interface(link: &Value) -> Option<InterfaceFacts> {
    if link["link_type"] != "ether" {
        return None;
    }
    let (name, flags) = (link["ifname"].as_str()?, link["flags"].as_array()?);
    let has = |flag: &str| flags.iter().any(|one| one == flag);
    let folder = Path::new("/sys/class/net").join(name);
    let driver = fs::read_link(folder.join("device/driver")).ok();
    // A link without a fixed speed has -1, or none.
    let speed = fs::read_to_string(folder.join("speed")).ok().and_then(|text| text.trim().parse().ok());
    Some(InterfaceFacts {
        name: name.into(),
        mac: link["address"].as_str()?.into(),
        up: has("UP"),
        carrier: has("LOWER_UP"),
        driver: driver.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())),
        speed,
    })
}
