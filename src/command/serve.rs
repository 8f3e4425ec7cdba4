//! `fullview serve-slices`: takes turns in the panels of another process.

use std::io::{BufReader, BufWriter, stdin, stdout};

use super::Exit;

pub fn run() -> anyhow::Result<Exit> {
    fullview_bench::served::serve(&mut BufReader::new(stdin()), &mut BufWriter::new(stdout()))?;
    Ok(Exit::Done)
}
