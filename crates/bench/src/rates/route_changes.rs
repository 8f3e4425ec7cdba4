//! Changes of routes while a device is measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fullview_router::netlink::route_writer::RouteWriter;
use serde::{Deserialize, Serialize};

use super::cores::put_beside;
use super::error::RatesError;
use super::route_table::RouteTable;
use super::schedule::SendSchedule;

const PACE: Duration = Duration::from_millis(1);

/// Changes that the kernel took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MadeChanges {
    pub changes: u64,
    pub seconds: f64,
}

/// A thread that changes routes until this value is dropped.
pub struct RouteChanges {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<MadeChanges, RatesError>>>,
}

impl RouteChanges {
    /// Makes so many changes a second, on the device's core, where a routing daemon would run: with the usual priority,
    /// far below that of the device, so that a loaded device gets fewer. Without a core the kernel chooses one.
    pub fn start(
        mut writer: RouteWriter,
        table: Arc<RouteTable>,
        rate: f64,
        core: Option<usize>,
    ) -> RouteChanges {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let work = move || {
            core.map_or(Ok(()), put_beside)?;
            change(&mut writer, &table, rate, &stopped)
        };
        RouteChanges { stop, thread: Some(thread::spawn(work)) }
    }

    /// Ends the changes.
    pub fn end(mut self) -> Result<MadeChanges, RatesError> {
        self.join().unwrap_or_else(|| Ok(MadeChanges::default()))
    }

    fn join(&mut self) -> Option<Result<MadeChanges, RatesError>> {
        self.stop.store(true, Ordering::Relaxed);
        let joined = self.thread.take()?.join();
        Some(joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Drop for RouteChanges {
    fn drop(&mut self) {
        // The thread that wants the result ends the changes.
        let thread = self.thread.take();
        self.stop.store(true, Ordering::Relaxed);
        let _ = thread.map(JoinHandle::join);
    }
}

/// What a late thread missed is not made up for, like packets of a late generator: changes come during trials too.
fn change(
    writer: &mut RouteWriter,
    table: &RouteTable,
    rate: f64,
    stop: &AtomicBool,
) -> Result<MadeChanges, RatesError> {
    let (mut schedule, began) = (SendSchedule::new(rate), Instant::now());
    while !stop.load(Ordering::Relaxed) {
        let due = schedule.due(began.elapsed().as_secs_f64());
        for number in schedule.next()..schedule.next() + due {
            writer.write(table.change(number as usize))?;
        }
        writer.flush()?;
        schedule.sent(due);
        thread::sleep(PACE);
    }
    Ok(MadeChanges { changes: schedule.next(), seconds: began.elapsed().as_secs_f64() })
}
