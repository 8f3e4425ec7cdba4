//! The workers of a router without a kernel, on interfaces of its own.

use std::sync::Arc;

use fullview_plane::counters::Counters;
use fullview_plane::forward::Forwarder;
use fullview_plane::host::relay::{Wake, WorkerEnd};
use fullview_plane::kernel::mirror::Mirror;
use fullview_plane::port::tap::TapPort;

use super::answers::Answers;
use super::plan::Plan;
use crate::operations::hub::Hub;
use crate::router::Options;
use crate::router::bell::Bell;
use crate::router::ports::{AnyPort, Memory};
use crate::router::show::{Counting, Snapshot};
use crate::router::thread::{Job, Thread};

pub struct Workers {
    threads: Vec<Thread<WorkerEnd>>,
    bell: Bell,
}

impl Workers {
    /// Makes the interfaces, and a worker on a queue of each of them for every end.
    pub fn start(
        options: &Options,
        plan: &Plan,
        answers: &mut Answers,
        mirror: &Mirror,
        host: &Bell,
        hub: &Hub,
    ) -> anyhow::Result<Workers> {
        let bell = Bell::new()?;
        let host = host.clone();
        let wake: Wake = Arc::new(move || host.ring());
        let ends = answers.connect(options.workers, &wake);
        let ports = open(options, plan)?;
        let mut memory = Memory::new();
        memory.ensure(options.workers * options.interfaces.len(), &options.ports);
        let mut cores = options.ports.cores.iter().copied();
        let mut first = Some(bell.clone());
        let start = |(ports, slow): (Vec<Option<AnyPort>>, WorkerEnd)| {
            let packets = memory.take(ports.len(), &options.ports);
            let mut forwarder = Forwarder::new(mirror.views().reader());
            forwarder.watch(hub.connect());
            let (core, bell) = (cores.next(), first.take());
            Thread::start(Job { forwarder, ports, packets, slow, core, bell })
        };
        Ok(Workers { threads: ports.into_iter().zip(ends).map(start).collect(), bell })
    }

    /// Wakes the one that sends for the host.
    pub fn ring(&self) {
        self.bell.ring();
    }

    /// Whether all go on.
    pub fn are_running(&self) -> bool {
        self.threads.iter().all(|thread| !thread.is_finished())
    }

    /// Ends all; what they counted.
    pub fn stop(self) -> anyhow::Result<Counters> {
        self.threads.iter().for_each(Thread::stop);
        let mut counters = Counters::new(0);
        for thread in self.threads {
            counters.add(&thread.join()?.result?);
        }
        Ok(counters)
    }
}

/// By worker and port.
fn open(options: &Options, plan: &Plan) -> anyhow::Result<Vec<Vec<Option<AnyPort>>>> {
    let mut all: Vec<Vec<Option<AnyPort>>> = (0..options.workers).map(|_| Vec::new()).collect();
    for interface in plan.interfaces.iter().filter(|interface| interface.vlan.is_none()) {
        let group = TapPort::create_group(interface.port, &interface.name, options.workers)?;
        group.first().map_or(Ok(()), |port| port.set_mtu(interface.mtu))?;
        all.iter_mut().zip(group).for_each(|(ports, port)| ports.push(Some(AnyPort::Tap(port))));
    }
    Ok(all)
}

impl Counting for Workers {
    fn snapshots(&self) -> Vec<Snapshot> {
        (0..).zip(&self.threads).map(|(number, thread)| thread.snapshot(number)).collect()
    }
}
