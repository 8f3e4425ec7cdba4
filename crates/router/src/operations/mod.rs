//! What operators have of a running router: the control socket, metrics, traces and captures of what is dropped.
//!
//! Everything is opened before the first packet ([`Listening`]), since what runs later may not be allowed to; nothing
//! here is ever waited for by a worker.

pub mod capture;
pub mod hub;
pub mod inspect;
mod respond;
mod unsaid;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error};

use crate::config::reload::on_hangup;
use crate::control::server;
use crate::daemon::Operating;
use crate::daemon::desk::Asker;
use crate::service::{Listener, Service};
use crate::telemetry::events::Events;
use crate::telemetry::http;
use capture::Capture;
use hub::Hub;
use respond::Respond;

/// What is wanted of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The control socket.
    pub control: Option<PathBuf>,
    /// Where metrics are served.
    pub metrics: Option<MetricsAt>,
    /// Where dropped packets go.
    pub capture_drops: Option<capture::Options>,
}

/// Where metrics are served: `127.0.0.1:9100`, `[::1]:9100`, or the path of a Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricsAt {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl FromStr for MetricsAt {
    type Err = String;

    fn from_str(text: &str) -> Result<MetricsAt, String> {
        if text.contains('/') {
            return Ok(MetricsAt::Unix(text.into()));
        }
        let mend =
            || format!("{text:?} is neither ADDRESS:PORT, such as 127.0.0.1:9100, nor the path of a socket");
        text.parse().map(MetricsAt::Tcp).map_err(|_| mend())
    }
}

impl<'de> Deserialize<'de> for MetricsAt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl MetricsAt {
    fn listen(&self) -> anyhow::Result<Listener> {
        Ok(match self {
            MetricsAt::Tcp(address) => Listener::tcp(*address)?,
            MetricsAt::Unix(path) => Listener::unix(path)?,
        })
    }
}

/// Sockets that listen and files that are open, before anybody is served.
#[derive(Default)]
pub struct Listening {
    control: Option<Listener>,
    metrics: Option<Listener>,
    capture: Option<capture::File>,
}

impl Listening {
    pub fn open(options: &Options) -> anyhow::Result<Listening> {
        Ok(Listening {
            control: options.control.as_deref().map(Listener::unix).transpose()?,
            metrics: options.metrics.as_ref().map(MetricsAt::listen).transpose()?,
            capture: options.capture_drops.as_ref().map(capture::File::create).transpose()?,
        })
    }
}

/// Services at work; they end when this is dropped.
pub struct Operations {
    _services: Vec<Service>,
    _capture: Option<Capture>,
}

impl Operations {
    pub fn start(
        operating: Operating,
        ports: &[String],
        asker: &Asker,
        hub: &Arc<Hub>,
        events: &Arc<Events>,
    ) -> anyhow::Result<Operations> {
        let Operating { listening, reloader, hangup } = operating;
        let mut services = Vec::new();
        let reloader = reloader.map(Arc::new);
        on_hangup(hangup, reloader.clone(), asker.clone(), Arc::clone(events))?;
        if let Some(listener) = listening.control {
            crate::log::line(&format!("control: {}", listener.address()));
            let respond = Respond::new(asker.clone(), Arc::clone(hub), Arc::clone(events), reloader);
            let respond = move || respond.for_client();
            services.push(server::start(listener, respond)?);
        }
        if let Some(listener) = listening.metrics {
            crate::log::line(&format!("metrics: http://{}/metrics", listener.address()));
            let (asker, events) = (asker.clone(), Arc::clone(events));
            services.push(http::start(listener, move || respond::metrics(&asker, &events))?);
        }
        let capture = listening.capture.map(|file| Capture::start(file, hub, ports.to_vec())).transpose()?;
        Ok(Operations { _services: services, _capture: capture })
    }
}
