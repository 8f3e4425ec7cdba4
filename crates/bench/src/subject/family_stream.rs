//! What the name of an experiment's family asks for: `inet` or `inet6`, and after a dot the stream of packets.

use fullview_router::error::BadInput;
use fullview_table::Family;

use crate::error::BenchError;
use crate::settings::Settings;

/// One family of an experiment, with the settings that hold in it.
pub struct FamilyStream {
    pub family: Family,
    /// The stream's name, as the protocol of `peers/README.md` passes it to peers.
    pub stream: String,
    pub settings: Settings,
}

/// The name that peers receive where the experiment names no stream.
const ONLY_STREAM: &str = "keys";

impl FamilyStream {
    /// Reads the family's name and lays the traffic of its stream over `settings`.
    pub fn of(settings: &Settings, name: &str) -> Result<Self, BenchError> {
        let (family, stream) =
            name.split_once('.').map_or((name, None), |(family, stream)| (family, Some(stream)));
        let unknown = || BadInput(format!("there is no family {family:?}: families are inet and inet6"));
        let family = Family::named(family).ok_or_else(unknown)?;
        let mut settings = settings.clone();
        if let Some(stream) = stream {
            let missing = || BadInput(format!("family {name}: there is no [subject.streams.{stream}]"));
            let traffic = settings.streams.0.get(stream).cloned().ok_or_else(missing)?;
            settings.traffic = traffic.laid_over(&settings.traffic);
        }
        Ok(FamilyStream { family, stream: stream.unwrap_or(ONLY_STREAM).into(), settings })
    }
}
