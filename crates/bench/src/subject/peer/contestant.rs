//! A contestant of a peer: one structure or router, on one stream.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use fullview_lab::{Slice, SubjectError, Validity, Verified};
use fullview_table::Family;

use super::process::{Process, Ready, WrongAnswers};
use crate::subject::lookup::{BUILD_MS, BYTES};

/// One contestant of a running peer, on one stream.
pub struct Contestant {
    pub process: Rc<RefCell<Process>>,
    pub name: String,
    pub family: Family,
    pub stream: String,
}

impl Contestant {
    /// Why it is not timed: the kind of reason, and the sentence for the report.
    pub fn obstacle(&self) -> Option<(Validity, String)> {
        let process = self.process.borrow();
        let Ready { bad, refused, .. } = process.ready();
        if let Some(refusal) = refused.iter().find(|refusal| refusal.contestant == self.name) {
            return Some((Validity::Refused, format!("{}: {}", self.name, refusal.why)));
        }
        let wrong = |bad: &&WrongAnswers| {
            (&bad.contestant, bad.family.as_str(), &bad.stream)
                == (&self.name, self.family.name(), &self.stream)
        };
        let WrongAnswers { bad, of, first, .. } = bad.iter().find(wrong)?;
        let first = first.as_ref().map(|first| format!(", the first {first}")).unwrap_or_default();
        Some((Validity::Misrouted, format!("{}: {bad} of {of} answers wrong{first}", self.name)))
    }

    /// The peer verified every answer before it was ready. A contestant that did not pass is not timed: its run is
    /// recorded as invalid.
    pub fn verify(&self) -> Result<Verified, SubjectError> {
        if let Some((reason, _)) = self.obstacle() {
            return Ok(Verified::SetAside(reason));
        }
        let process = self.process.borrow();
        let ready = &process.ready().contestants;
        if ready.contains(&self.name) {
            return Ok(Verified::Ready);
        }
        Err(format!("the peer does not offer {}, only {}", self.name, ready.join(", ")).into())
    }

    /// See [`fullview_lab::Panel::slice`].
    pub fn slice(&self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        Ok(self.process.borrow_mut().slice(&self.name, &self.stream, lead_in, length)?)
    }

    /// The counters of [`BYTES`] and [`BUILD_MS`], as far as the peer reported them.
    pub fn facts(&self) -> impl Iterator<Item = (String, f64)> {
        let process = self.process.borrow();
        let fact = process.ready().facts.iter().find(|fact| fact.contestant == self.name);
        let bytes = fact.and_then(|fact| fact.bytes).map(|bytes| (BYTES.to_owned(), bytes));
        let build = fact.and_then(|fact| fact.build_s).map(|seconds| (BUILD_MS.to_owned(), seconds * 1e3));
        bytes.into_iter().chain(build)
    }

    /// What the report prints of the contestant.
    pub fn events(&self) -> Vec<String> {
        let pages = format!("{} on {} pages", self.name, self.process.borrow().ready().pages);
        vec![self.obstacle().map_or(pages, |(_, why)| why)]
    }
}
