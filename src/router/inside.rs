//! What those who ask the router's thread find.

use fullview_plane::kernel::follow::Statistics;
use fullview_plane::kernel::mirror::Mirror;

use super::show::Snapshot;
use super::workers::Workers;

/// The router as its own thread sees it.
pub struct Inside<'a> {
    mirror: &'a mut Mirror,
    workers: &'a Workers,
    statistics: Statistics,
}

impl<'a> Inside<'a> {
    pub(super) fn new(mirror: &'a mut Mirror, workers: &'a Workers, statistics: Statistics) -> Inside<'a> {
        Inside { mirror, workers, statistics }
    }

    /// Tables, next hops, neighbours, views.
    pub fn mirror(&self) -> &Mirror {
        self.mirror
    }

    /// How the kernel is followed.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// What each worker has counted.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.workers.snapshots()
    }
}
