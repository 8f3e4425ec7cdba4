//! What a rule keeps.

use std::fmt::{Display, Formatter, Result};

use crate::pf::state_options::{Flush, Overload, PfStateOptions, SourceTrack, StateBinding};

/// The options in parentheses, or nothing.
impl Display for PfStateOptions {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let mut parts = limits(self);
        parts.extend(bindings(self).into_iter().map(str::to_owned));
        parts.extend(self.timeouts.iter().map(|(timeout, seconds)| format!("{} {seconds}", timeout.name())));
        if parts.is_empty() { Ok(()) } else { write!(out, " ({})", parts.join(", ")) }
    }
}

fn limits(options: &PfStateOptions) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(options.max.map(|max| format!("max {max}")));
    parts.extend(options.no_sync.then(|| "no-sync".to_owned()));
    parts.extend(options.source_track.map(|track| format!("source-track {}", track_name(track))));
    parts.extend(options.max_src_states.map(|max| format!("max-src-states {max}")));
    parts.extend(options.max_src_conn.map(|max| format!("max-src-conn {max}")));
    parts.extend(
        options.max_src_conn_rate.map(|rate| format!("max-src-conn-rate {}/{}", rate.limit, rate.seconds)),
    );
    parts.extend(options.max_src_nodes.map(|max| format!("max-src-nodes {max}")));
    parts.extend(options.overload.as_ref().map(Overload::to_string));
    parts
}

fn bindings(options: &PfStateOptions) -> Vec<&'static str> {
    let flags = [
        ("if-bound", options.binding == Some(StateBinding::Interface)),
        ("allow-related", options.allow_related),
        ("sloppy", options.sloppy),
        ("pflow", options.pflow),
    ];
    flags.into_iter().filter(|(_, set)| *set).map(|(name, _)| name).collect()
}

fn track_name(track: SourceTrack) -> &'static str {
    match track {
        SourceTrack::Global => "global",
        SourceTrack::Rule => "rule",
    }
}

impl Display for Overload {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let flush = match self.flush {
            Flush::None => "",
            Flush::OfRule => " flush",
            Flush::Global => " flush global",
        };
        write!(out, "overload <{}>{flush}", self.table)
    }
}
