//! Captures of dropped packets: pcapng files with the drop reason as the comment of each packet, which Wireshark and tshark
//! show.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;

/// Writes a capture up to a size limit.
pub struct CommentedCapture<W: Write> {
    writer: PcapNgWriter<W>,
    /// The interfaces that the file describes so far.
    interfaces: Vec<String>,
    room: u64,
}

/// Why a packet was not written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file has reached its limit.
    #[error("the capture is full")]
    Full,
    /// The file cannot be written.
    #[error("the capture cannot be written: {0}")]
    Write(String),
}

impl<W: Write> CommentedCapture<W> {
    /// Writes at most `limit` bytes to `output`.
    pub fn new(output: W, limit: u64) -> Result<CommentedCapture<W>, CaptureError> {
        let writer = PcapNgWriter::new(output).map_err(failed)?;
        Ok(CommentedCapture { writer, interfaces: Vec::new(), room: limit })
    }

    /// Writes a frame that an interface received at a time. `len` is the length of the whole frame, of which there may be
    /// less.
    pub fn write(
        &mut self,
        interface: &str,
        at: SystemTime,
        (frame, len): (&[u8], u32),
        comment: &str,
    ) -> Result<(), CaptureError> {
        // More than the headers, options and paddings of both blocks need.
        let needed = (frame.len() + comment.len() + interface.len() + 128) as u64;
        self.room = self.room.checked_sub(needed).ok_or(CaptureError::Full)?;
        let block = EnhancedPacketBlock {
            interface_id: self.interface(interface)?,
            timestamp: at.duration_since(UNIX_EPOCH).unwrap_or_default(),
            original_len: len,
            data: Cow::Borrowed(frame),
            options: vec![EnhancedPacketOption::Common(CommonOption::Comment(Cow::Borrowed(comment)))],
        };
        self.writer.write_pcapng_block(block).map(drop).map_err(failed)
    }

    /// The number of an interface in the file; describes the interface in the file first if it is new.
    fn interface(&mut self, name: &str) -> Result<u32, CaptureError> {
        if let Some(known) = self.interfaces.iter().position(|known| known == name) {
            return Ok(known as u32);
        }
        let options = vec![InterfaceDescriptionOption::IfName(Cow::Borrowed(name))];
        let block = InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: 0, options };
        self.writer.write_pcapng_block(block).map_err(failed)?;
        self.interfaces.push(name.to_owned());
        Ok(self.interfaces.len() as u32 - 1)
    }

    /// Writes buffered data to the system.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.get_mut().flush()
    }
}

/// The error with all its causes; the message of each error leaves its causes out.
fn failed(error: impl std::error::Error) -> CaptureError {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    CaptureError::Write(causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}")))
}
