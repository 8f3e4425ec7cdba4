//! Why real clients cannot be set up or measured.

use std::io;

use fullview_router::control::client::AskError;

use crate::testbed::TestbedError;

/// Why real clients cannot be set up or measured.
#[derive(Debug, thiserror::Error)]
pub enum VethError {
    #[error("{0}")]
    Testbed(#[from] TestbedError),
    /// A program that cannot be run.
    #[error("{program}: {error}")]
    Start { program: String, error: io::Error },
    /// A client or server that failed.
    #[error("{program} failed: {said}")]
    Failed { program: &'static str, said: String },
    /// Output of another form.
    #[error("iperf3's output: {0}; is it iperf3 3.9 or newer?")]
    Output(#[source] serde_json::Error),
    #[error("iperf3 reported no interval after the first {after} s")]
    NoIntervals { after: f64 },
    /// The router did not start.
    #[error("fullview forward {arguments}: {said}")]
    Router { arguments: String, said: String },
    #[error("{0}")]
    Ask(#[from] AskError),
    #[error("the folder of a router: {0}")]
    Folder(#[source] io::Error),
    #[error("the HTTP server of the test bed: {0}")]
    Server(#[source] io::Error),
    /// No request was answered.
    #[error("no request of curl was answered in {seconds} s: {said}")]
    Unanswered { seconds: f64, said: String },
}
