//! What the control socket and the metrics endpoint share: a thread that accepts, a few clients at a time in threads
//! of their own, and deadlines, so that a client that is slow, silent or hostile costs a thread for some seconds and
//! nothing else. No thread of the forwarding path ever waits for one of these.

mod deadline;
mod listener;

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

pub use deadline::Timed;
pub use listener::Listener;

/// Clients served at a time; further ones are turned away at once.
const MOST_CLIENTS: usize = 16;

/// A byte stream with time limits.
pub trait Connection: io::Read + io::Write + Send {
    /// Sets both time limits.
    fn set_timeout(&self, timeout: std::time::Duration) -> io::Result<()>;
}

/// What is done with each client.
pub type Handler = dyn Fn(Box<dyn Connection>) + Send + Sync;

/// What is done with a client beyond [`MOST_CLIENTS`]: it must not wait for anything.
pub type Refusal = fn(&mut dyn Connection);

/// A running service; it ends when this is dropped.
pub struct Service {
    wake: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Serves `listener` in a thread of that name.
    pub fn start(
        name: &str,
        listener: Listener,
        handler: Arc<Handler>,
        refuse: Refusal,
    ) -> io::Result<Service> {
        let (wake, woken) = UnixStream::pair()?;
        listener.set_nonblocking()?;
        let clients = Clients { name: name.to_owned(), handler, refuse, count: Arc::default() };
        let thread =
            Builder::new().name(name.to_owned()).spawn(move || accept(&listener, &woken, &clients))?;
        Ok(Service { wake, thread: Some(thread) })
    }
}

/// Clients that are being served keep their threads until they are done or their time is up; no new ones come.
impl Drop for Service {
    fn drop(&mut self) {
        // Closing our end wakes the thread; if even that fails there is nothing left to do about it.
        let _ = self.wake.shutdown(std::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &Listener, woken: &UnixStream, clients: &Clients) {
    loop {
        let mut waited =
            [PollFd::new(listener, PollFlags::IN), PollFd::from_borrowed_fd(woken.as_fd(), PollFlags::IN)];
        match poll(&mut waited, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        if !waited[1].revents().is_empty() {
            return;
        }
        // What fails here concerns one client: it went away, or the process has no descriptor left for it.
        match listener.accept() {
            Ok(connection) => clients.serve(connection),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    }
}

struct Clients {
    name: String,
    handler: Arc<Handler>,
    refuse: Refusal,
    count: Arc<AtomicUsize>,
}

impl Clients {
    fn serve(&self, mut connection: Box<dyn Connection>) {
        // Only the accepting thread adds, so that the limit holds without a loop.
        if self.count.load(Ordering::Acquire) >= MOST_CLIENTS {
            return (self.refuse)(&mut *connection);
        }
        self.count.fetch_add(1, Ordering::AcqRel);
        let place = Place(Arc::clone(&self.count));
        let handler = Arc::clone(&self.handler);
        // Without a thread the client is dropped, and its place with it.
        let _ = Builder::new().name(format!("{} client", self.name)).spawn(move || {
            let _place = place;
            handler(connection);
        });
    }
}

/// A client's place, given back however its thread ends.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
