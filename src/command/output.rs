//! Where commands write: standard output, whose errors say that it is theirs, and files that replace others.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, StdoutLock, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

/// Standard output, locked.
pub struct Stdout(StdoutLock<'static>);

pub fn stdout() -> Stdout {
    Stdout(io::stdout().lock())
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(named)
    }
}

/// Of the same kind: a reader that has closed it is no failure.
fn named(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("standard output: cannot write: {error}"))
}

/// Makes a temporary file in the same folder, so that it can replace the other file in one step. Its permissions are those
/// of the other file.
pub fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let permissions = fs::metadata(path).map_or(Permissions::from_mode(0o644), |file| file.permissions());
    Builder::new().permissions(permissions).tempfile_in(folder)
}

/// Has a file written that appears as a whole: what was there before stays until all of it is on the disk. A pipe or a
/// device cannot be replaced, and is written as it is.
pub fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
    // A link stays a link to the file.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return write(&mut BufWriter::new(File::create(path)?));
    }
    let mut made = beside(path)?;
    write(&mut BufWriter::new(&mut made))?;
    made.as_file().sync_all()?;
    made.persist(path)?;
    Ok(())
}
