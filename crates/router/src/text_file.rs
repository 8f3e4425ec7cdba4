//! Text files of bounded length: configurations, experiments, preferences.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use fullview_filter::text::decode;

/// A longer file is refused: it is none of ours, and reading a device such as `/dev/zero` would never end.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a text file in UTF-8.
pub fn read(path: &Path) -> io::Result<String> {
    let mut text = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is longer than {MAX_BYTES} bytes"),
        ));
    }
    decode(text)
}
