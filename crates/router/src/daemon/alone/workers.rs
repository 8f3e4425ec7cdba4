//! The workers of a router without a kernel.

use std::sync::Arc;

use crate::host::channel::{Wake, WorkerEndpoint};
use crate::mirror::Mirror;
use anyhow::Context;
use fullview_plane::counters::Counters;
use fullview_plane::forward::Forwarder;

use super::answers::Answers;
use super::carrier::{Carriers, Change};
use super::plan::Plan;
use super::ports::{Redirect, open};
use crate::daemon::Options;
use crate::daemon::bell::Bell;
use crate::daemon::ports::{AnyPort, Memory};
use crate::daemon::show::{Counting, Snapshot};
use crate::daemon::thread::{Job, Thread};
use crate::operations::hub::Hub;

pub struct Workers {
    threads: Vec<Thread<WorkerEndpoint>>,
    bell: Bell,
    carriers: Carriers,
    /// Frames are ours as long as it is there.
    _redirect: Redirect,
}

impl Workers {
    /// Opens the ports, and starts the workers, each on a queue of every port.
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
        let mut memory = Memory::new();
        memory.ensure(options.workers * options.interfaces.len(), &options.ports);
        let mut redirect = Redirect::default();
        let ports = open(options, plan, &memory, &mut redirect)?;
        let of_first = ports.first().into_iter().flatten().flatten();
        let lines = options.interfaces.iter().zip(of_first).zip(answers.ports());
        let carriers = Carriers::of(lines.map(|((name, port), state)| (name, port, state.up)));
        let carriers = carriers.context("the state of links")?;
        let mut cores = options.ports.cores.iter().copied();
        let mut first = Some(bell.clone());
        let start = |(ports, slow): (Vec<Option<AnyPort>>, WorkerEndpoint)| {
            let packets = memory.take(ports.len(), &options.ports);
            let mut forwarder = Forwarder::new(mirror.views().reader());
            forwarder.set_tracer(hub.connect());
            let (core, bell) = (cores.next(), first.take());
            Thread::start(Job { forwarder, ports, packets, slow, core, bell })
        };
        let threads = ports.into_iter().zip(ends).map(start).collect();
        Ok(Workers { threads, bell, carriers, _redirect: redirect })
    }

    /// What became of links since this was last asked.
    pub fn changed_links(&mut self) -> Vec<Change> {
        self.carriers.changed()
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

impl Counting for Workers {
    fn snapshots(&self) -> anyhow::Result<Vec<Snapshot>> {
        Ok((0..).zip(&self.threads).map(|(number, thread)| thread.snapshot(number)).collect())
    }
}
