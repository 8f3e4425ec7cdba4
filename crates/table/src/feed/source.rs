//! Opens a file, and detects its compression and format by the first bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use ruzstd::decoding::BlockDecodingStrategy::UptoBlocks;
use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError::SkipFrame};

use super::error::{At, Fault, Located};

/// Bytes read from the file at a time; each such read reports progress.
const BLOCK: usize = 1 << 16;

/// The compression of a file, detected by its magic number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    None,
    /// gzip (RFC 1952), any number of members.
    Gzip,
    /// bzip2, any number of streams.
    Bzip2,
    /// Zstandard (RFC 8878), any number of frames.
    Zstd,
}

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One prefix a line.
    Text,
    /// An MRT table dump (RFC 6396).
    Mrt,
}

/// An open feed: its decompressed content and its format.
pub(super) struct Source<'a> {
    pub(super) compression: Compression,
    pub(super) format: Format,
    pub(super) content: Box<dyn BufRead + 'a>,
}

impl<'a> Source<'a> {
    pub(super) fn open(path: &Path, on_progress: Option<&'a dyn Fn(u64, u64)>) -> Result<Self, Located> {
        let open = |error| Fault::Open(error).at(At::Whole);
        let file = File::open(path).map_err(open)?;
        let metadata = file.metadata().map_err(open)?;
        if metadata.is_dir() {
            return Err(Fault::Directory.at(At::Whole));
        }
        Source::new(file, metadata.len(), on_progress)
    }

    /// Opens a stream. `total` is the length of the compressed input in bytes, 0 if it is not known.
    pub(super) fn new(
        input: impl Read + 'a,
        total: u64,
        on_progress: Option<&'a dyn Fn(u64, u64)>,
    ) -> Result<Self, Located> {
        let counted = ProgressReader { input, done: 0, total, on_progress };
        let (magic, packed) = peek::<4>(BufReader::with_capacity(BLOCK, counted)).map_err(read_fault)?;
        if magic.is_empty() {
            return Err(Fault::Empty.at(At::Whole));
        }
        let compression = Compression::of(&magic);
        let unpacked = compression.unpack(packed);
        let (head, content) = peek::<12>(unpacked).map_err(read_fault)?;
        if head.is_empty() {
            return Err(Fault::Empty.at(At::Whole));
        }
        Ok(Source { compression, format: Format::of(&head)?, content: Box::new(content) })
    }
}

fn read_fault(error: io::Error) -> Located {
    Fault::Read(error).at_byte(0)
}

impl Compression {
    fn of(magic: &[u8]) -> Self {
        match magic {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [b'B', b'Z', b'h', ..] => Compression::Bzip2,
            [0x28, 0xb5, 0x2f, 0xfd] => Compression::Zstd,
            _ => Compression::None,
        }
    }

    fn unpack<'a>(self, packed: impl BufRead + 'a) -> Box<dyn BufRead + 'a> {
        match self {
            Compression::None => Box::new(packed),
            Compression::Gzip => buffered(flate2::bufread::MultiGzDecoder::new(packed)),
            Compression::Bzip2 => buffered(bzip2::bufread::MultiBzDecoder::new(packed)),
            Compression::Zstd => buffered(Zstd::new(packed)),
        }
    }
}

fn buffered<'a>(input: impl Read + 'a) -> Box<dyn BufRead + 'a> {
    Box::new(BufReader::with_capacity(BLOCK, input))
}

impl Format {
    /// Detects the format. MRT begins with a time (four bytes), a type and a subtype (two bytes each, far below 256)
    /// and a length. So the fifth byte is zero, which never occurs in text.
    fn of(head: &[u8]) -> Result<Self, Located> {
        let [_, _, _, _, 0, kind, 0, subtype, _, _, _, _] = *head else {
            return Ok(Format::Text);
        };
        match kind {
            12 | 13 => Ok(Format::Mrt),
            16 | 17 => {
                Err(Fault::NotTableDump(format!("BGP4MP (type {kind}, subtype {subtype})")).at_byte(0))
            }
            11 | 32 | 33 | 48 | 49 => Err(Fault::NotTableDump(format!("type {kind}")).at_byte(0)),
            _ => Ok(Format::Text),
        }
    }
}

/// Returns the first `N` bytes (fewer at the end of the input), and the input as if they had not been read.
fn peek<const N: usize>(mut input: impl BufRead) -> io::Result<(Vec<u8>, impl BufRead)> {
    let mut head = Vec::with_capacity(N);
    input.by_ref().take(N as u64).read_to_end(&mut head)?;
    Ok((head.clone(), Cursor::new(head).chain(input)))
}

/// Counts the bytes read, and reports progress.
struct ProgressReader<'a, R> {
    input: R,
    done: u64,
    total: u64,
    on_progress: Option<&'a dyn Fn(u64, u64)>,
}

impl<R: Read> Read for ProgressReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.done += count as u64;
        if let Some(report) = self.on_progress {
            report(self.done, self.total);
        }
        Ok(count)
    }
}

/// Decodes several frames: the decoder library reads one, and a file may have several, with skippable frames between.
struct Zstd<R> {
    input: R,
    decoder: FrameDecoder,
    /// Whether a frame is being decoded.
    open: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(input: R) -> Self {
        Zstd { input, decoder: FrameDecoder::new(), open: false }
    }

    /// Starts the next frame that holds data; false at the end of the input.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.open && !self.input.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.input) {
                Ok(()) => self.open = true,
                Err(FrameDecoderError::ReadFrameHeaderError(SkipFrame { length, .. })) => {
                    io::copy(&mut self.input.by_ref().take(length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(damaged(error)),
            }
        }
        Ok(self.open)
    }

    /// Compares the checksum, which the library computes but does not check.
    fn close_frame(&mut self) -> io::Result<()> {
        self.open = false;
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(stored), Some(computed)) if stored != computed => Err(damaged("the checksum is wrong")),
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() && self.next_frame()? {
            let count = self.decoder.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            if self.decoder.is_finished() {
                self.close_frame()?;
            } else {
                self.decoder.decode_blocks(&mut self.input, UptoBlocks(1)).map_err(damaged)?;
            }
        }
        Ok(0)
    }
}

fn damaged(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
