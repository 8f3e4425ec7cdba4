//! Serves clients of a socket: the control socket and the metrics use it. One thread accepts connections, and each of a
//! few clients at a time has a thread of its own with deadlines, so that a client that is slow, silent or hostile costs one
//! thread for some seconds and nothing else. No thread of the forwarding path waits for one of these.

mod connection;
mod deadline;
pub mod descriptors;
mod listener;

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

pub use connection::Connection;
pub use deadline::Timed;
pub use listener::{ListenError, Listener, SharedListener, is_same_file};

/// Clients served at a time. Further ones are refused at once.
const MAX_CLIENTS: usize = 16;

/// Serves one client.
pub type Handler = dyn Fn(Box<dyn Connection>) + Send + Sync;

/// Refuses a client beyond the most that are served. It must not wait for anything.
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

/// Accepts no more clients. Those that are being served keep their threads until they are done or their time is up.
impl Drop for Service {
    fn drop(&mut self) {
        // The shutdown of this end wakes the thread. If even that fails, nothing can be done about it.
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
        // A failure concerns one client: it closed the connection, or the process has no descriptor left for it.
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
        // Only the accepting thread adds to the count, so the check and the addition need not be one step.
        if self.count.load(Ordering::Acquire) >= MAX_CLIENTS {
            return (self.refuse)(&mut *connection);
        }
        self.count.fetch_add(1, Ordering::AcqRel);
        let place = ClientPlace(Arc::clone(&self.count));
        let handler = Arc::clone(&self.handler);
        // If no thread can be started, the connection is closed and the place given back.
        let _ = Builder::new().name(format!("{} client", self.name)).spawn(move || {
            let _place = place;
            handler(connection);
        });
    }
}

/// A client's place, given back however its thread ends.
struct ClientPlace(Arc<AtomicUsize>);

impl Drop for ClientPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
