//! `fullview import`: the report of a netbenches result directory.

use std::io::Write;
use std::path::{Path, PathBuf};

use fullview_netbenches::{Import, json, sentences, write};

use super::Exit;
use crate::args::ImportArgs;
use crate::command::output::stdout;

pub fn run(args: &ImportArgs) -> anyhow::Result<Exit> {
    let import = Import::read(&args.folder)?;
    let mut out = stdout();
    if args.json {
        out.write_all(json(&import)?.as_bytes())?;
        return Ok(Exit::Done);
    }
    let folder = args.out.clone().unwrap_or_else(|| results(&args.folder));
    write(&import, &folder, args.force)?;
    import.skipped.iter().try_for_each(|line| writeln!(out, "skipped: {line}"))?;
    writeln!(out, "report: {}", folder.join("report.md").display())?;
    sentences(&import).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(Exit::Done)
}

fn results(folder: &Path) -> PathBuf {
    let named = folder.canonicalize().ok().and_then(|path| path.file_name().map(PathBuf::from));
    Path::new("results").join(named.unwrap_or_else(|| "import".into()))
}
