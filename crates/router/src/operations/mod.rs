//! The services around a running router: the control socket, metrics, reloads, captures of dropped packets, and flow export.
//!
//! Sockets and files are opened before the first packet ([`PreparedOperations`]), since the process may not be allowed to
//! open them once it is confined. No worker ever waits for one of these services.

mod capture;
mod error;
mod export;
mod filter;
mod filter_trace;
mod handover;
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
use crate::daemon::{InterfaceLocks, QueryHandle, Shared};
use crate::log;
use crate::options::{ExportOptions, MetricsAddress, OperationsOptions};
use crate::service::{ListenError, Listener, Service};
use crate::takeover::Predecessor;
use crate::telemetry::http;
use capture::{DropCapture, DropFile};
pub use error::OperationsError;
use export::FlowExport;
use handover::Inheritance;
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
    /// configuration with its file, if the router has one. Sockets that `predecessor` has are taken from it.
    pub fn open(
        options: &OperationsOptions,
        reloadable: Option<(PathBuf, RouterConfig)>,
        mut predecessor: Option<&mut Predecessor>,
    ) -> Result<PreparedOperations, OperationsError> {
        let control = options.control.clone().map(MetricsAddress::Unix);
        let mut listen = |address: &MetricsAddress| listen(address, predecessor.as_deref_mut());
        let (control, metrics) =
            (control.as_ref().map(&mut listen), options.metrics.as_ref().map(&mut listen));
        let (control, metrics) = (control.transpose()?, metrics.transpose()?);
        let is_replacing = predecessor.is_some();
        let capture =
            |options: &_| if is_replacing { DropFile::beside(options) } else { DropFile::create(options) };
        Ok(PreparedOperations {
            control,
            metrics,
            capture: options.capture_drops.as_ref().map(capture).transpose()?,
            export: options.export.clone(),
            reloader: reloadable.map(|(path, config)| Reloader::new(path, config)),
            hangup: reload::block_hangup()?,
        })
    }
}

fn listen(address: &MetricsAddress, predecessor: Option<&mut Predecessor>) -> Result<Listener, ListenError> {
    let taken = predecessor.map(|predecessor| match address {
        MetricsAddress::Tcp(address) => Ok(predecessor.tcp_listener(&address.to_string())),
        MetricsAddress::Unix(path) => predecessor.unix_listener(path),
    });
    match (taken.transpose()?.flatten(), address) {
        (Some(taken), _) => Ok(taken),
        (None, MetricsAddress::Tcp(address)) => Listener::tcp(*address),
        (None, MetricsAddress::Unix(path)) => Listener::unix(path),
    }
}

/// Running services. They end when this is dropped.
pub struct Operations {
    _services: Vec<Service>,
    _capture: Option<DropCapture>,
    _export: Option<FlowExport>,
    /// It holds the locks of the interfaces.
    _inheritance: Arc<Inheritance>,
}

impl Operations {
    /// Starts the services. `ports` has the names of the interfaces, by port, and `locks` their locks.
    pub fn start(
        prepared: PreparedOperations,
        (ports, locks): (&[String], InterfaceLocks),
        queries: &QueryHandle,
        shared: &Arc<Shared>,
    ) -> Result<Operations, OperationsError> {
        let PreparedOperations { control, metrics, capture, export, reloader, hangup } = prepared;
        let reloader = reloader.map(Arc::new);
        reload::on_hangup(hangup, reloader.clone(), queries.clone(), Arc::clone(&shared.events))?;
        let sockets = control.iter().chain(&metrics).map(Listener::share);
        let sockets = sockets.collect::<Result<_, _>>().map_err(OperationsError::Share)?;
        let inheritance = Arc::new(Inheritance { ports: ports.to_vec(), locks, sockets });
        let (handles, kept) = ((queries, shared), Arc::clone(&inheritance));
        let control =
            control.map(|listener| serve_control(listener, handles, reloader, inheritance)).transpose()?;
        let metrics = metrics.map(|listener| serve_metrics(listener, queries, shared)).transpose()?;
        let capture =
            capture.map(|file| DropCapture::start(file, &shared.hub, ports.to_vec())).transpose()?;
        let export =
            export.map(|options| FlowExport::start(options, ports, queries, &shared.hub)).transpose()?;
        let services = control.into_iter().chain(metrics).collect();
        Ok(Operations { _services: services, _capture: capture, _export: export, _inheritance: kept })
    }
}

fn serve_control(
    listener: Listener,
    (queries, shared): (&QueryHandle, &Arc<Shared>),
    reloader: Option<Arc<Reloader>>,
    inheritance: Arc<Inheritance>,
) -> Result<Service, OperationsError> {
    log::line(&format!("control: {}", listener.address()));
    let (queries, shared) = (queries.clone(), Arc::clone(shared));
    let responder =
        move |user| ClientResponder::new(&queries, &shared, reloader.as_ref(), (user, &inheritance));
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
