//! A profile of the device under test, on the machine of an agent, while other nodes send.

use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use fullview_profile::{CoreProfile, CoreRecorder, CoreTasks, ProfileError, ProfiledCore, TaskScope};

use super::protocol::ProfileRequest;
use crate::rates::processes_of;
use crate::testbed::{OwnerFolder, TestbedError};

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum DutProfileError {
    #[error("{0}")]
    Folder(#[from] TestbedError),
    #[error("{0}")]
    Profile(#[from] ProfileError),
    #[error("perf ended before the load began")]
    Ended,
}

/// perf, which observes a core until this value is dropped.
pub struct DutProfile {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<CoreProfile, ProfileError>>>,
}

impl DutProfile {
    /// Returns when perf observes.
    pub fn start(request: &ProfileRequest, process: Option<u32>) -> Result<DutProfile, DutProfileError> {
        let (folder, tasks) = (OwnerFolder::current()?, tasks(request, process));
        let core = request.core.map_or(ProfiledCore::Busiest, ProfiledCore::One);
        let ((begins, begun), (end, ends)) = (channel(), channel());
        let record = move || {
            let window = || {
                // Both ends of the connection belong to one value, which waits for this thread.
                let _ = begins.send(());
                let _ = ends.recv();
            };
            CoreRecorder::new(core, folder.path()).record(&tasks, window).map(|(profile, ())| profile)
        };
        let mut started = DutProfile { end: Some(end), thread: Some(thread::spawn(record)) };
        match begun.recv() {
            Ok(()) => Ok(started),
            Err(_) => started.join().and(Err(DutProfileError::Ended)),
        }
    }

    /// Ends the window, and reads what perf has.
    pub fn end(mut self) -> Result<CoreProfile, DutProfileError> {
        self.join()
    }

    fn join(&mut self) -> Result<CoreProfile, DutProfileError> {
        self.end = None;
        let joined = self.thread.take().ok_or(DutProfileError::Ended)?.join();
        Ok(joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
    }
}

impl Drop for DutProfile {
    fn drop(&mut self) {
        self.end = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The machine has no other task than to forward, so that packets are the device's in whichever thread they are processed.
fn tasks(request: &ProfileRequest, process: Option<u32>) -> CoreTasks {
    let threads = request.interfaces.iter().map(|interface| format!("napi/{interface}-"));
    CoreTasks {
        processes: process.map(processes_of).unwrap_or_default(),
        kernel_threads: threads.chain(["ksoftirqd/".to_owned()]).collect(),
        scope: if request.everything { TaskScope::Everything } else { TaskScope::ReceivedPackets },
    }
}
