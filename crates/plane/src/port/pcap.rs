//! Capture files as ports: the port receives the frames of one file, and writes what it sends to another.
//!
//! Reads pcap (microseconds or nanoseconds, either byte order) and pcapng, distinguished by their first bytes; writes pcap
//! with nanoseconds. A frame that was captured only in part is refused, because a router cannot forward it.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Chain, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapTsResolution, PcapWriter};
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgState};

use super::{Port, PortError, PortLosses};
use crate::burst::{BURST, Burst, FRAME_CAPACITY, Packet, Slot};

/// First bytes of a pcapng file, in either byte order.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// The longest readable record in bytes: four times the longest snapshot length that tcpdump allows.
const LONGEST_RECORD: usize = 1 << 20;

type Input<R> = Chain<Cursor<Vec<u8>>, R>;

/// A capture being read.
pub struct CaptureReader<R: Read> {
    path: PathBuf,
    format: Format<R>,
    packets: u64,
    finished: bool,
}

enum Format<R: Read> {
    Pcap(PcapReader<Input<R>>),
    PcapNg(PcapNgReader<Input<R>>),
}

impl CaptureReader<File> {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<CaptureReader<File>, PortError> {
        let file = File::open(path).map_err(|source| PortError::File { path: path.to_owned(), source })?;
        CaptureReader::new(path, file)
    }
}

impl<R: Read> CaptureReader<R> {
    /// Reads from any input; errors name `path`.
    pub fn new(path: &Path, mut input: R) -> Result<CaptureReader<R>, PortError> {
        let mut magic = Vec::new();
        let first = input.by_ref().take(4).read_to_end(&mut magic);
        first.map_err(|source| PortError::File { path: path.to_owned(), source })?;
        let is_pcapng = magic == PCAPNG;
        let input = Cursor::new(magic).chain(input);
        let format = Format::detect(is_pcapng, input);
        let format = format.map_err(|problem| PortError::NotACapture { path: path.to_owned(), problem })?;
        Ok(CaptureReader { path: path.to_owned(), format, packets: 0, finished: false })
    }

    /// Reads the next frame into `slot` and returns its time since 1970; `None` at the end. After an error there
    /// are no more frames.
    pub fn read_into(&mut self, slot: &mut Slot) -> Result<Option<Duration>, PortError> {
        if self.finished {
            return Ok(None);
        }
        let read = self.format.read_into(slot);
        self.finished = !matches!(read, Ok(Some(_)));
        self.packets += 1;
        read.map_err(|problem| PortError::Record { path: self.path.clone(), number: self.packets, problem })
    }

    /// Whether all frames have been read.
    pub fn is_finished(&self) -> bool {
        self.finished
    }
}

impl<R: Read> Format<R> {
    fn detect(is_pcapng: bool, input: Input<R>) -> Result<Format<R>, String> {
        if is_pcapng {
            let reader =
                PcapNgReader::with_capacity(input, LONGEST_RECORD).map_err(|error| not_a_capture(&error))?;
            return Ok(Format::PcapNg(reader));
        }
        let reader =
            PcapReader::with_capacity(input, LONGEST_RECORD).map_err(|error| not_a_capture(&error))?;
        check_link(reader.header().datalink)?;
        Ok(Format::Pcap(reader))
    }

    fn read_into(&mut self, slot: &mut Slot) -> Result<Option<Duration>, String> {
        match self {
            Format::Pcap(reader) => read_record(reader, slot),
            Format::PcapNg(reader) => read_block(reader, slot),
        }
    }
}

fn read_record<R: Read>(reader: &mut PcapReader<R>, slot: &mut Slot) -> Result<Option<Duration>, String> {
    let resolution = reader.header().ts_resolution;
    let Some(record) = reader.next_raw_packet() else { return Ok(None) };
    let record = record.map_err(|error| damaged(&error))?;
    // The file's own snapshot length is not enforced: some writers leave it 0.
    let packet = record.try_into_pcap_packet(resolution, u32::MAX).map_err(|error| damaged(&error))?;
    store(slot, packet.data(), packet.orig_len())?;
    Ok(Some(packet.timestamp()))
}

fn read_block<R: Read>(reader: &mut PcapNgReader<R>, slot: &mut Slot) -> Result<Option<Duration>, String> {
    while let Some(block) = reader.next_block() {
        let (block, state) = block.map_err(|error| damaged(&error))?;
        let (interface, time, data, len) = match block {
            Block::EnhancedPacket(packet) => {
                (packet.interface_id, packet.timestamp, packet.data, packet.original_len)
            }
            Block::Packet(packet) => {
                (packet.interface_id.into(), packet.timestamp, packet.data, packet.original_len)
            }
            Block::SimplePacket(packet) => (0, Duration::ZERO, packet.data, packet.original_len),
            _ => continue,
        };
        check_link(link_of(state, interface)?)?;
        store(slot, &data, len)?;
        return Ok(Some(time));
    }
    Ok(None)
}

fn link_of(state: &PcapNgState, interface: u32) -> Result<DataLink, String> {
    let described = state.interfaces().get(interface as usize);
    described
        .map(|interface| interface.linktype)
        .ok_or_else(|| format!("interface {interface} is not described"))
}

fn check_link(link: DataLink) -> Result<(), String> {
    if link == DataLink::ETHERNET {
        return Ok(());
    }
    Err(format!("link type {link:?} is not Ethernet; capture on an Ethernet interface, not on 'any'"))
}

fn store(slot: &mut Slot, frame: &[u8], original_len: u32) -> Result<(), String> {
    if frame.len() as u64 != u64::from(original_len) {
        let have = frame.len();
        return Err(format!(
            "only {have} of {original_len} bytes were captured; capture whole frames (tcpdump -s 0)"
        ));
    }
    if !slot.set_frame(frame) {
        return Err(format!(
            "{original_len} bytes are longer than a packet slot of {FRAME_CAPACITY}; remove it"
        ));
    }
    Ok(())
}

fn not_a_capture(error: &dyn Error) -> String {
    format!("neither pcap nor pcapng: {}", causes(error))
}

fn damaged(error: &dyn Error) -> String {
    format!(
        "{}; the file is cut or damaged here, or the record is longer than {LONGEST_RECORD} bytes",
        causes(error)
    )
}

/// An error with all its causes; the message of each error leaves its causes out.
fn causes(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", causes(source)),
        None => error.to_string(),
    }
}

/// A capture being written.
pub struct CaptureWriter<W: Write> {
    path: PathBuf,
    writer: PcapWriter<W>,
    packets: u64,
}

impl CaptureWriter<BufWriter<File>> {
    /// Creates a file, or empties the one that is there.
    pub fn create(path: &Path) -> Result<CaptureWriter<BufWriter<File>>, PortError> {
        let file = File::create(path).map_err(|source| PortError::File { path: path.to_owned(), source })?;
        CaptureWriter::new(path, BufWriter::new(file))
    }
}

impl<W: Write> CaptureWriter<W> {
    /// Writes to any output; errors name `path`.
    pub fn new(path: &Path, output: W) -> Result<CaptureWriter<W>, PortError> {
        let header = PcapHeader { ts_resolution: PcapTsResolution::NanoSecond, ..PcapHeader::default() };
        let writer =
            PcapWriter::with_header(output, header).map_err(|error| unwritten(path, causes(&error)))?;
        Ok(CaptureWriter { path: path.to_owned(), writer, packets: 0 })
    }

    /// Writes a frame that was seen at `time` since 1970.
    pub fn write(&mut self, time: Duration, frame: &[u8]) -> Result<(), PortError> {
        self.packets += 1;
        let record = PcapPacket::new(time, frame.len() as u32, frame).map_err(|error| causes(&error));
        let written =
            record.and_then(|record| self.writer.write_packet(&record).map_err(|error| causes(&error)));
        written.map(|_| ()).map_err(|problem| unwritten(&self.path, problem))
    }

    /// Writes buffered data to the system. Dropping the writer does that too, but cannot report an error.
    pub fn flush(&mut self) -> Result<(), PortError> {
        self.writer.flush().map_err(|error| unwritten(&self.path, causes(&error)))
    }

    /// The output, unflushed.
    pub fn into_inner(self) -> W {
        self.writer.into_inner()
    }
}

/// The error of the output, for example a full disk.
fn unwritten(path: &Path, problem: String) -> PortError {
    PortError::File { path: path.to_owned(), source: io::Error::other(problem) }
}

/// A port that receives the frames of one capture and writes what it sends to another. Without a reader it receives nothing,
/// without a writer it refuses everything.
pub struct CapturePort<'a, R: Read, W: Write> {
    number: u16,
    reader: Option<CaptureReader<R>>,
    writer: Option<CaptureWriter<W>>,
    free: Vec<Packet<'a>>,
    sent: Vec<Packet<'a>>,
    refused: u64,
}

impl<'a, R: Read, W: Write> CapturePort<'a, R, W> {
    /// Port `number`.
    pub fn new(
        number: u16,
        reader: Option<CaptureReader<R>>,
        writer: Option<CaptureWriter<W>>,
    ) -> CapturePort<'a, R, W> {
        let (free, sent) = (Vec::with_capacity(BURST), Vec::with_capacity(BURST));
        CapturePort { number, reader, writer, free, sent, refused: 0 }
    }

    /// The two captures.
    pub fn into_inner(self) -> (Option<CaptureReader<R>>, Option<CaptureWriter<W>>) {
        (self.reader, self.writer)
    }
}

impl<'a, R: Read, W: Write> Port<'a> for CapturePort<'a, R, W> {
    fn receive(&mut self, burst: &mut Burst<'a>, limit: usize) -> Result<usize, PortError> {
        let Some(reader) = &mut self.reader else { return Ok(0) };
        let wanted = limit.min(burst.room());
        for received in 0..wanted {
            let Some(slot) = self.free.last_mut() else { return Ok(received) };
            if reader.read_into(slot)?.is_none() {
                return Ok(received);
            }
            slot.port = self.number;
            burst.fill(self.free.pop().into_iter());
        }
        Ok(wanted)
    }

    fn transmit(&mut self, burst: &mut Burst<'a>) -> Result<usize, PortError> {
        let Some(writer) = &mut self.writer else {
            self.refused += burst.len() as u64;
            return Ok(0);
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let written = burst.iter().try_for_each(|packet| writer.write(now, packet.frame()));
        let count = burst.len();
        self.sent.extend(burst.drain());
        written.map(|()| count)
    }

    fn reclaim(&mut self, free: &mut Burst<'a>) -> usize {
        let count = free.room().min(self.sent.len());
        free.fill(self.sent.drain(..count));
        count
    }

    fn recycle(&mut self, free: &mut Burst<'a>) -> usize {
        let count = free.len();
        self.free.extend(free.drain());
        count
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn is_finished(&self) -> bool {
        self.reader.as_ref().is_none_or(CaptureReader::is_finished)
    }

    fn overruns(&mut self) -> Result<u64, PortError> {
        Ok(0)
    }

    fn losses(&mut self) -> PortLosses {
        PortLosses::default()
    }

    fn has_unsent(&mut self) -> bool {
        false
    }
}
