//! The services around a running router: the control socket, metrics, reloads, captures of dropped packets, and flow export.
//!
//! Sockets and files are opened before the first packet ([`PreparedOperations`]), since the process may not be allowed to
//! open them once it is confined. No worker ever waits for one of these services.

mod capture;
mod error;
mod export;
mod filter;
mod filter_trace;
mod inspect;
mod kernel_names;
mod program_trace;
mod reload;
mod respond;
mod states;
mod table_edit;
mod tables;
mod translated;
mod undelivered;

use std::path::PathBuf;
use std::sync::Arc;

use nix::sys::signalfd::SignalFd;

use crate::config::RouterConfig;
use crate::control::server;
use crate::daemon::{QueryHandle, Shared};
use crate::log;
use crate::options::{ExportOptions, MetricsAddress, OperationsOptions};
use crate::service::{ListenError, Listener, Service};
use crate::telemetry::http;
use capture::{DropCapture, DropFile};
pub use error::OperationsError;
use export::FlowExport;
use reload::Reloader;
use respond::ClientResponder;

/// Sockets that listen and files that are open, before the first client is served.
pub struct PreparedOperations {
    control: Option<Listener>,
    metrics: Option<Listener>,
    capture: Option<DropFile>,
    export: Option<ExportOptions>,
    reloader: Option<Reloader>,
    hangup: SignalFd,
}

impl PreparedOperations {
    /// Opens what the options name, and blocks SIGHUP; this must happen before any thread is started. `reloadable` is the
    /// configuration with its file, if the router has one.
    pub fn open(
        options: &OperationsOptions,
        reloadable: Option<(PathBuf, RouterConfig)>,
    ) -> Result<PreparedOperations, OperationsError> {
        Ok(PreparedOperations {
            control: options.control.as_deref().map(Listener::unix).transpose()?,
            metrics: options.metrics.as_ref().map(listen).transpose()?,
            capture: options.capture_drops.as_ref().map(DropFile::create).transpose()?,
            export: options.export.clone(),
            reloader: reloadable.map(|(path, config)| Reloader::new(path, config)),
            hangup: reload::block_hangup()?,
        })
    }
}

fn listen(address: &MetricsAddress) -> Result<Listener, ListenError> {
    match address {
        MetricsAddress::Tcp(address) => Listener::tcp(*address),
        MetricsAddress::Unix(path) => Listener::unix(path),
    }
}

/// Running services. They end when this is dropped.
pub struct Operations {
    _services: Vec<Service>,
    _capture: Option<DropCapture>,
    _export: Option<FlowExport>,
}

impl Operations {
    /// Starts the services. `ports` has the names of the interfaces, by port.
    pub fn start(
        prepared: PreparedOperations,
        ports: &[String],
        queries: &QueryHandle,
        shared: &Arc<Shared>,
    ) -> Result<Operations, OperationsError> {
        let PreparedOperations { control, metrics, capture, export, reloader, hangup } = prepared;
        let reloader = reloader.map(Arc::new);
        reload::on_hangup(hangup, reloader.clone(), queries.clone(), Arc::clone(&shared.events))?;
        let control =
            control.map(|listener| serve_control(listener, queries, shared, reloader)).transpose()?;
        let metrics = metrics.map(|listener| serve_metrics(listener, queries, shared)).transpose()?;
        let capture =
            capture.map(|file| DropCapture::start(file, &shared.hub, ports.to_vec())).transpose()?;
        let export =
            export.map(|options| FlowExport::start(options, ports, queries, &shared.hub)).transpose()?;
        let services = control.into_iter().chain(metrics).collect();
        Ok(Operations { _services: services, _capture: capture, _export: export })
    }
}

fn serve_control(
    listener: Listener,
    queries: &QueryHandle,
    shared: &Arc<Shared>,
    reloader: Option<Arc<Reloader>>,
) -> Result<Service, OperationsError> {
    log::line(&format!("control: {}", listener.address()));
    let (queries, shared) = (queries.clone(), Arc::clone(shared));
    let responder = move || ClientResponder::new(&queries, &shared, reloader.as_ref());
    server::start(listener, responder).map_err(OperationsError::Thread)
}

fn serve_metrics(
    listener: Listener,
    queries: &QueryHandle,
    shared: &Shared,
) -> Result<Service, OperationsError> {
    log::line(&format!("metrics: http://{}/metrics", listener.address()));
    let (queries, events) = (queries.clone(), Arc::clone(&shared.events));
    http::start(listener, move || respond::metrics(&queries, &events)).map_err(OperationsError::Thread)
}
