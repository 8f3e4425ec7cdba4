//! Samples that wait for the export, bounded in number, with the counts of those that were lost.

use std::collections::BTreeMap;

use crate::sample::PacketSample;

/// Samples that wait at most.
const MOST: usize = 1 << 14;

/// Samples in order.
#[derive(Default)]
pub struct SampleBacklog {
    samples: Vec<PacketSample>,
    /// By port: lost samples that no sample reports yet.
    unreported: BTreeMap<u16, LostSamples>,
}

/// Samples that were lost, and the packets that they stood for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostSamples {
    /// The number of samples.
    pub samples: u64,
    /// Packets of the port since the sample before the first of them.
    pub packets: u64,
}

impl SampleBacklog {
    /// Adds a sample. It is lost if too many wait.
    pub fn push(&mut self, sample: PacketSample) {
        if self.samples.len() >= MOST {
            let lost = LostSamples { samples: sample.lost + 1, packets: sample.passed };
            return self.keep(sample.port, lost);
        }
        let before = self.unreported.remove(&sample.port).unwrap_or_default();
        let (passed, lost) = (sample.passed + before.packets, sample.lost + before.samples);
        self.samples.push(PacketSample { passed, lost, ..sample });
    }

    /// Counts samples that were lost before they came here: the last sample of their port reports them, or else its next one.
    pub fn lose(&mut self, port: u16, lost: LostSamples) {
        match self.samples.iter_mut().rfind(|sample| sample.port == port) {
            Some(last) => {
                last.lost += lost.samples;
                last.passed += lost.packets;
            }
            None => self.keep(port, lost),
        }
    }

    fn keep(&mut self, port: u16, lost: LostSamples) {
        let kept = self.unreported.entry(port).or_default();
        kept.samples += lost.samples;
        kept.packets += lost.packets;
    }

    /// Takes the samples that wait.
    pub fn take(&mut self) -> Vec<PacketSample> {
        std::mem::take(&mut self.samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program_verdict::ProgramVerdict;
    use crate::sample::Decision;

    fn sample(port: u16) -> PacketSample {
        PacketSample::new(port, 60, Decision::Program(ProgramVerdict::Forward), &[0; 60])
    }

    fn taken(backlog: &mut SampleBacklog) -> Vec<(u16, u64, u64)> {
        backlog.take().iter().map(|sample| (sample.port, sample.passed, sample.lost)).collect()
    }

    #[test]
    fn the_last_sample_of_a_port_reports_what_was_lost_after_it() {
        let mut backlog = SampleBacklog::default();
        [0, 0, 1].iter().for_each(|port| backlog.push(sample(*port)));
        for port in [0, 2] {
            backlog.lose(port, LostSamples { samples: 3, packets: 40 });
        }
        assert_eq!(taken(&mut backlog), [(0, 1, 0), (0, 41, 3), (1, 1, 0)]);
        backlog.push(sample(2));
        assert_eq!(taken(&mut backlog), [(2, 41, 3)], "the next one of a port that had none");
    }

    #[test]
    fn samples_beyond_the_bound_are_counted() {
        let mut backlog = SampleBacklog::default();
        (0..MOST + 5).for_each(|_| backlog.push(sample(0)));
        assert_eq!(backlog.take().len(), MOST);
        backlog.push(sample(0));
        assert_eq!(taken(&mut backlog), [(0, 6, 5)]);
    }
}
