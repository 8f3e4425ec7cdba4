//! Panels whose members are in other processes: two builds of this program take turns and are compared.
//!
//! Each process makes its own bed and members, verifies them, and runs slices when it is asked to
//! (`docs/reference/serve-slices.md` has the protocol). It measures the time of a slice itself, so that neither the request
//! nor the answer counts. Every build is served, the one that asks included, so that none has the advantage of sharing the
//! process of the lab.

mod bench;
mod build_settings;
mod error;
mod panel;
mod process;
mod protocol;
mod server;

pub use bench::ServedBench;
pub use build_settings::{BuildSettings, WhichBuild, against, refuse_peers};
pub use error::ServedError;
pub use process::Program;
pub use protocol::{Hello, ServedBuild};
pub use server::serve;
