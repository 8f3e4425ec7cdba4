//! An agent on a node, as the program that measures sees it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::error::RemoteError;
use super::inventory::NodeSettings;
use super::protocol::{AgentReply, AgentRequest, COMMAND, NodeFacts, longest_settling};
use super::session::Session;
use super::shell::{RemoteFolder, output};
use super::ssh::SshHost;
use crate::served::{Hello, ServedBuild};

/// How long an answer may take beyond what was asked for.
const ANSWER: Duration = Duration::from_secs(60);

/// A connection to an agent. When it is dropped, the agent puts back what it changed and ends.
pub struct AgentConnection {
    node: String,
    session: Session,
    pub facts: NodeFacts,
    _folder: Option<RemoteFolder>,
}

impl AgentConnection {
    /// Starts the program of a node, after copying it there unless the inventory names one.
    pub fn start(host: &SshHost, settings: &NodeSettings) -> Result<AgentConnection, RemoteError> {
        let (program, folder) = match &settings.program {
            Some(program) => (program.clone(), None),
            None => copy(host).map(|(program, folder)| (program, Some(folder)))?,
        };
        let session = Session::start(&host.node, host.session(&format!("exec '{program}' {COMMAND}")))?;
        session.keep_alive();
        let facts = first_facts(&host.node, &session)?;
        let here = Hello::of_this_program().build;
        // The file there may be a copy without symbols, for another processor.
        let (file, instructions) = (here.program.clone(), here.instructions.clone());
        if (ServedBuild { program: file, instructions, ..facts.build.clone() }) != here {
            let [there, here] = [&facts.build, &here].map(|build| {
                let commit = build.commit.as_deref().unwrap_or("unknown commit");
                format!("{} {commit}{}", build.version, if build.debug { ", debug" } else { "" })
            });
            return Err(RemoteError::OtherBuild { node: host.node.clone(), program, there, here });
        }
        Ok(AgentConnection { node: host.node.clone(), session, facts, _folder: folder })
    }

    /// Sends a request and waits for its answer.
    pub fn ask(&self, request: &AgentRequest) -> Result<AgentReply, RemoteError> {
        self.send(request)?;
        self.answer(Duration::ZERO)
    }

    pub fn send(&self, request: &AgentRequest) -> Result<(), RemoteError> {
        send(&self.node, &self.session, request)
    }

    /// The answer to a request that takes so long.
    pub fn answer(&self, takes: Duration) -> Result<AgentReply, RemoteError> {
        answer(&self.node, &self.session, takes)
    }

    /// The same of a request whose answer is a number.
    pub fn count(&self, request: &AgentRequest) -> Result<u64, RemoteError> {
        let takes = match request {
            AgentRequest::Settled { settle_ms } => longest_settling(*settle_ms),
            _ => Duration::ZERO,
        };
        self.send(request)?;
        match self.answer(takes)? {
            AgentReply::Count(count) => Ok(count),
            other => Err(self.unexpected(&other)),
        }
    }

    pub fn unexpected(&self, reply: &AgentReply) -> RemoteError {
        unexpected(&self.node, reply)
    }
}

fn first_facts(node: &str, session: &Session) -> Result<NodeFacts, RemoteError> {
    send(node, session, &AgentRequest::Facts)?;
    match answer(node, session, Duration::ZERO)? {
        AgentReply::Facts(facts) => Ok(*facts),
        other => Err(unexpected(node, &other)),
    }
}

fn send(node: &str, session: &Session, request: &AgentRequest) -> Result<(), RemoteError> {
    let failed =
        |error: serde_json::Error| RemoteError::Answer { node: node.into(), found: error.to_string() };
    session.send(&format!("{}\n", serde_json::to_string(request).map_err(failed)?))
}

fn answer(node: &str, session: &Session, takes: Duration) -> Result<AgentReply, RemoteError> {
    let line = session.line(ANSWER + takes)?;
    match serde_json::from_str(&line) {
        Ok(AgentReply::Error(message)) => Err(RemoteError::Failed { node: node.into(), message }),
        Ok(reply) => Ok(reply),
        Err(_) => Err(RemoteError::Answer { node: node.into(), found: line.chars().take(200).collect() }),
    }
}

fn unexpected(node: &str, reply: &AgentReply) -> RemoteError {
    RemoteError::Answer { node: node.into(), found: format!("{reply:?}") }
}

/// Copies this program to a host, and compares the checksums.
fn copy(host: &SshHost) -> Result<(String, RemoteFolder), RemoteError> {
    let unreadable = |error| RemoteError::Start { program: "sha256sum", error };
    let this = std::env::current_exe().map_err(unreadable)?;
    let folder = RemoteFolder::make(host)?;
    let program = format!("{}/fullview", folder.path);
    host.copy(&this, &program)?;
    let there = output(host, &format!("chmod 700 {program} && sha256sum {program}"))?;
    let here = checksum(&this).map_err(unreadable)?;
    let same = first_word(&there).is_some_and(|sum| first_word(&here) == Some(sum));
    if same { Ok((program, folder)) } else { Err(RemoteError::Checksum { node: host.node.clone() }) }
}

/// What `sha256sum` prints of a file here.
pub fn checksum(program: &Path) -> std::io::Result<String> {
    let done = Command::new("sha256sum").arg(program).output()?;
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

fn first_word(text: &str) -> Option<&str> {
    text.split_ascii_whitespace().next()
}
