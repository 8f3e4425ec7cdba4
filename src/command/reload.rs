//! `fullview reload` and `fullview check-config`.

use std::io::{self, Write};

use anyhow::Context;

use super::Exit;
use super::show::connect;
use crate::args::operations::{CheckConfigArgs, ReloadArgs};
use fullview_router::config::Config;
use fullview_router::control::request::Request;

/// The answer says what is in force, or why nothing was changed.
pub fn reload(args: &ReloadArgs) -> anyhow::Result<Exit> {
    let told: String = connect(&args.router)?.ask(&Request::Reload)?;
    writeln!(io::stdout(), "{told}")?;
    Ok(Exit::Done)
}

pub fn check(args: &CheckConfigArgs) -> anyhow::Result<Exit> {
    let config = Config::load(&args.file)?;
    // Files that it names are looked at too.
    config.live().with_context(|| args.file.display().to_string())?;
    let interfaces = config.router.interfaces.join(", ");
    writeln!(io::stdout(), "{}: in order; forwards between {interfaces}", args.file.display())?;
    Ok(Exit::Done)
}
