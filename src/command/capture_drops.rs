//! `fullview capture-drops`: writes the packets that a running router drops, with the reasons, to a file. This program
//! writes the file, for a confined router may not.

use std::fs::File;
use std::io::BufWriter;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context;
use fullview_plane::trace::PacketFilter;
use fullview_plane::trace::capture::CommentedCapture;

use super::campaign::stop_on_signal;
use super::show::connect;
use super::trace::{follow, from_hex};
use super::{BadInput, Exit};
use crate::args::operations::CaptureDropsArgs;
use fullview_router::control::request::WatchQuery;
use fullview_router::control::status::NotedPacket;

pub fn run(args: &CaptureDropsArgs) -> anyhow::Result<Exit> {
    let matching: Result<PacketFilter, _> = args.r#match.parse();
    matching.map_err(|error| BadInput(format!("--match: {error}")))?;
    let path = || args.write.display().to_string();
    let stop = stop_on_signal()?;
    let mut client = connect(&args.router)?;
    let file = File::create(&args.write).with_context(path)?;
    let mut capture = CommentedCapture::new(BufWriter::new(file), u64::MAX).with_context(path)?;
    capture.flush().with_context(path)?;
    let watch = WatchQuery {
        drops_only: true,
        interface: args.interface.clone(),
        matching: Some(args.r#match.clone()),
        count: args.count,
    };
    let mut written = 0;
    let followed = follow(&mut client, watch, (args.seconds, &stop), |packet| {
        written += 1;
        write(&mut capture, packet).with_context(path)
    })?;
    fullview_router::log::line(&format!(
        "{}: {written} dropped packets, {} left out",
        args.write.display(),
        followed.missed
    ));
    Ok(followed.exit())
}

fn write(capture: &mut CommentedCapture<BufWriter<File>>, packet: &NotedPacket) -> anyhow::Result<()> {
    let frame = from_hex(&packet.frame).map_err(BadInput)?;
    let at = UNIX_EPOCH + Duration::from_micros(packet.at);
    capture.write(&packet.interface, at, (&frame, packet.frame_len), &packet.verdict)?;
    // What is in the file is whole, however this program ends.
    Ok(capture.flush()?)
}
