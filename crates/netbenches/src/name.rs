//! The names of raw files: `bench.IMAGE.CFG.PKTGEN.ITER.KIND`, from which empty parts are left out.

/// The name of the log of one run. Only an `.info` file says what the parts of the series are, because they may contain
/// dots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunName {
    pub series: String,
    pub run: u32,
    pub kind: String,
}

impl RunName {
    pub fn parse(name: &str) -> Option<RunName> {
        let (rest, kind) = name.strip_prefix("bench.")?.rsplit_once('.')?;
        let (series, run) = rest.rsplit_once('.').unwrap_or(("", rest));
        Some(RunName { series: series.into(), run: run.parse().ok()?, kind: kind.into() })
    }
}
