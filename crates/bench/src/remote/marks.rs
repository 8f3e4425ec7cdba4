//! Marked frames, which show where the wire of an interface leads.

use std::thread;
use std::time::{Duration, Instant};

use fullview_plane::burst::{Arena, BURST, Burst};
use fullview_plane::port::packet::{PacketOptions, PacketPort};
use fullview_plane::port::{Port, PortError};

use super::protocol::{ExchangeRequest, HeardMark};

const RING_FRAMES: usize = 256;
/// So often each mark is sent: nodes begin at different moments.
const EVERY: Duration = Duration::from_millis(50);
/// The EtherType for local experiments.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
const WORD: &[u8] = b"fullview wire ";
const SHORTEST: usize = 60;

/// Sends marks from interfaces, and returns those that arrived there from others.
pub fn exchange(request: &ExchangeRequest) -> Result<Vec<HeardMark>, PortError> {
    let mut heard = thread::scope(|scope| {
        let names = request.interfaces.iter();
        let threads: Vec<_> = names.map(|name| scope.spawn(move || on_interface(request, name))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect::<Result<Vec<Vec<HeardMark>>, PortError>>()
    })?
    .concat();
    heard.sort();
    heard.dedup();
    Ok(heard)
}

fn on_interface(request: &ExchangeRequest, interface: &str) -> Result<Vec<HeardMark>, PortError> {
    let (mut sent, mut received) = (Arena::new(1), Arena::new(BURST));
    let options = PacketOptions { ring_frames: RING_FRAMES, ..PacketOptions::default() };
    let mut port = PacketPort::open(0, interface, options)?;
    let (mut free, mut burst) = (Burst::new(), Burst::new());
    free.fill(received.packets());
    port.recycle(&mut free);
    let mut own = Burst::new();
    own.fill(sent.packets());
    let frame = mark(request, interface);
    own.iter_mut().for_each(|slot| _ = slot.set_frame(&frame));
    let (began, mut heard) = (Instant::now(), Vec::new());
    while began.elapsed() < Duration::from_millis(request.milliseconds) {
        port.transmit(&mut own)?;
        thread::sleep(EVERY);
        port.reclaim(&mut own);
        while port.receive(&mut burst, BURST)? > 0 {
            let marks = burst.iter_mut().filter_map(|slot| read(request.token, slot.frame()));
            heard.extend(marks.map(|from| HeardMark { interface: interface.into(), from }));
            port.recycle(&mut burst);
        }
    }
    Ok(heard)
}

/// To all stations at the wire; a station does nothing with an unknown EtherType.
fn mark(request: &ExchangeRequest, interface: &str) -> Vec<u8> {
    let from = format!("{}:{interface}", request.node);
    let mut frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1], &ETHERTYPE, WORD].concat();
    frame.extend_from_slice(&request.token.to_be_bytes());
    frame.push(from.len() as u8);
    frame.extend_from_slice(from.as_bytes());
    frame.resize(frame.len().max(SHORTEST), 0);
    frame
}

/// Which port sent this mark of an exchange.
fn read(token: u64, frame: &[u8]) -> Option<String> {
    let rest = frame.get(12..)?.strip_prefix(&ETHERTYPE)?.strip_prefix(WORD)?;
    let (length, name) = rest.strip_prefix(&token.to_be_bytes())?.split_first()?;
    Some(String::from_utf8_lossy(name.get(..usize::from(*length))?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_its_port_and_belongs_to_one_exchange() {
        let request = ExchangeRequest { node: "dut".into(), token: 7, interfaces: vec![], milliseconds: 1 };
        let frame = mark(&request, "eth1");
        assert!(frame.len() >= SHORTEST && frame[12..14] == ETHERTYPE);
        assert_eq!(read(7, &frame).unwrap(), "dut:eth1");
        assert_eq!(read(8, &frame), None);
        let end = 14 + WORD.len() + 8 + 1 + "dut:eth1".len();
        assert!((0..end).all(|cut| read(7, &frame[..cut]).is_none()) && read(7, &frame[..end]).is_some());
    }
}
