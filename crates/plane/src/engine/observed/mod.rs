//! The process's end of the copies that the program makes of packets: samples, and packets that a trace or a capture asks
//! for. A ring of the kernel carries them; the thread that reads it is not on the path of packets.

use std::num::NonZeroU32;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aya::maps::{Map, MapData, RingBuf};

use super::error::EngineError;
use crate::observed::{Observed, ObservedPacket, PacketObserver};
use crate::program_verdict::{ProgramVerdict, XdpReason};
use crate::report_time::ReportTime;
use crate::sample::{Decision, PacketSample};
use crate::sample_backlog::{LostSamples, SampleBacklog};
use crate::trace::TraceRequest;
use layout::{CopyHead, IS_SAMPLE, IS_WATCHED};
use wishes::{RawLoss, Wishes};

mod layout;
mod wishes;

/// Copies that one call takes at most, so that a flood does not keep it for ever.
const MOST_COPIES: usize = 1 << 14;

/// Reads the copies of one program.
pub struct ProgramObserver {
    ring: RingBuf<MapData>,
    wishes: Wishes,
    /// The devices of the ports, by port number; 0 for a port without one.
    devices: Vec<u32>,
    /// Counts that were reported already.
    missed: u32,
    losses: Vec<RawLoss>,
}

impl ProgramObserver {
    /// Reads this ring, and has one packet in `sample` copied, if that is given.
    pub(super) fn new(
        ring: OwnedFd,
        wishes: OwnedFd,
        devices: Vec<u32>,
        sample: Option<NonZeroU32>,
    ) -> Result<ProgramObserver, EngineError> {
        let ring = Map::RingBuf(MapData::from_fd(ring)?).try_into()?;
        let wishes = Wishes::new(wishes.as_fd())?;
        wishes.sample(sample);
        let losses = wishes.losses().collect();
        Ok(ProgramObserver { ring, wishes, devices, missed: 0, losses })
    }

    /// The samples that were lost since the last call. The ring was full then, so that its samples have been read by now, and
    /// those of the same port are in the backlog.
    fn report_losses(&mut self, samples: &mut SampleBacklog) {
        for (before, now) in self.losses.iter_mut().zip(self.wishes.losses()) {
            let lost = LostSamples {
                samples: now.samples.wrapping_sub(before.samples).into(),
                packets: now.packets.wrapping_sub(before.packets).into(),
            };
            *before = now;
            if let Some(port) = port_of(&self.devices, now.device).filter(|_| lost != LostSamples::default())
            {
                samples.lose(port, lost);
            }
        }
    }
}

impl PacketObserver for ProgramObserver {
    fn watch(&mut self, requests: &[Arc<TraceRequest>]) {
        let device = |port: u16| self.devices.get(usize::from(port)).copied();
        self.wishes.watch(requests.iter().map(|request| &**request), device);
    }

    fn follow_devices(&mut self, devices: Vec<u32>) {
        self.devices = devices;
    }

    fn read(&mut self, samples: &mut SampleBacklog) -> Observed {
        let clock = CopyClock::now();
        let mut observed = Observed::default();
        for _ in 0..MOST_COPIES {
            let Some(copy) = self.ring.next() else { break };
            let Some((head, frame)) = CopyHead::split(&copy) else { continue };
            let Some(packet) = packet(&self.devices, clock, &head, frame) else { continue };
            if head.kinds & IS_SAMPLE != 0 {
                samples.push(sample(&packet, head.passed));
            }
            if head.kinds & IS_WATCHED != 0 {
                observed.packets.push(packet);
            }
        }
        self.report_losses(samples);
        let missed = self.wishes.missed();
        observed.missed = missed.wrapping_sub(std::mem::replace(&mut self.missed, missed)).into();
        observed
    }
}

/// The port on a device.
fn port_of(devices: &[u32], device: u32) -> Option<u16> {
    let place = devices.iter().position(|of| *of == device && device != 0)?;
    place.try_into().ok()
}

/// `None` if it came in by a device that is no port's, or was refused for an unknown reason.
fn packet(devices: &[u32], clock: CopyClock, head: &CopyHead, frame: &[u8]) -> Option<ObservedPacket> {
    let verdict = match head.reason {
        0 => ProgramVerdict::Forward,
        number => ProgramVerdict::Refuse(XdpReason::numbered(number)?),
    };
    let (frame, frame_len) = with_tag(head, frame);
    Some(ObservedPacket {
        at: clock.time(head.at),
        port: port_of(devices, head.device)?,
        verdict,
        egress: port_of(devices, head.egress),
        frame_len,
        frame,
        is_segmented: head.segments > 0,
    })
}

/// The frame as it was on the link, with the tag that the kernel has beside it; and its whole length.
fn with_tag(head: &CopyHead, frame: &[u8]) -> (Vec<u8>, u32) {
    const MACS: usize = 12;
    if head.tag_protocol == [0, 0] || frame.len() < MACS {
        return (frame.to_vec(), head.length);
    }
    let tag = [head.tag_protocol, head.tag_control.to_be_bytes()].concat();
    ([&frame[..MACS], &tag, &frame[MACS..]].concat(), head.length + tag.len() as u32)
}

fn sample(packet: &ObservedPacket, passed: u64) -> PacketSample {
    let decision = Decision::Program(packet.verdict);
    let sample = PacketSample::new(packet.port, packet.frame_len, decision, &packet.frame);
    PacketSample { egress: packet.egress, passed, ..sample }
}

/// The same moment on the clock of the program and on that of the system.
#[derive(Clone, Copy)]
struct CopyClock {
    program: u64,
    system: SystemTime,
}

impl CopyClock {
    fn now() -> CopyClock {
        CopyClock { program: ReportTime::now().nanos(), system: SystemTime::now() }
    }

    /// The time of a copy, which may have been made since this moment.
    fn time(self, copied_at: u64) -> SystemTime {
        let (age, ahead) = (self.program.saturating_sub(copied_at), copied_at.saturating_sub(self.program));
        self.system - Duration::from_nanos(age) + Duration::from_nanos(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_beside_the_frame_is_put_into_it() {
        let head = CopyHead { tag_protocol: [0x81, 0], tag_control: 7, length: 60, ..CopyHead::default() };
        let (frame, len) = with_tag(&head, &[1; 60]);
        assert_eq!((&frame[10..18], frame.len(), len), (&[1, 1, 0x81, 0, 0, 7, 1, 1][..], 64, 64));
        assert_eq!(with_tag(&CopyHead { tag_protocol: [0; 2], ..head }, &[1; 60]), (vec![1; 60], 60));
    }

    #[test]
    fn devices_that_are_no_ports_have_no_packets() {
        let devices = [4, 0, 9];
        assert_eq!([4, 9, 0, 5].map(|device| port_of(&devices, device)), [Some(0), Some(2), None, None]);
        let clock = CopyClock::now();
        let head = CopyHead { device: 4, egress: 9, ..CopyHead::default() };
        assert_eq!(packet(&devices, clock, &head, &[]).unwrap().egress, Some(2));
        assert_eq!(packet(&devices, clock, &CopyHead { device: 5, ..head }, &[]), None);
        assert_eq!(packet(&devices, clock, &CopyHead { reason: 200, ..head }, &[]), None);
    }

    #[test]
    fn the_time_of_a_copy_is_that_of_the_system() {
        let clock = CopyClock { program: 1_000, system: SystemTime::UNIX_EPOCH + Duration::from_secs(1) };
        let at = [400, 1_500].map(|at| clock.time(at).duration_since(SystemTime::UNIX_EPOCH).unwrap());
        assert_eq!(at.map(|at| at.as_nanos()), [999_999_400, 1_000_000_500]);
    }
}
