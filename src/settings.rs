//! What an experiment can set about its subject. Every field is optional: a variant sets what differs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Everything under `[subject]`, and under `set` of a variant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// What is measured: a whole forwarding path, or lookups alone.
    pub kind: Option<Kind>,
    #[serde(default)]
    pub table: TableSettings,
    #[serde(default)]
    pub traffic: TrafficSettings,
    #[serde(default, skip_serializing_if = "StreamSettings::is_empty")]
    pub streams: StreamSettings,
    #[serde(default)]
    pub load: LoadSettings,
    #[serde(default)]
    pub router: RouterSettings,
    #[serde(default)]
    pub lookup: LookupSettings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Forward,
    Lookup,
}

/// `[subject.table]`: the routes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TableSettings {
    /// `synthetic`, `two-routes`, or a path to a table file.
    pub source: Option<String>,
    /// IPv4 routes of a synthetic table.
    pub inet: Option<usize>,
    /// IPv6 routes of a synthetic table.
    pub inet6: Option<usize>,
    /// Different next hops, for routes whose source names none.
    pub next_hops: Option<u16>,
    /// Seed of a synthetic table and of the next hops.
    pub seed: Option<u64>,
    /// Whether the two static routes of the test networks are added to the table (default true).
    pub static_routes: Option<bool>,
}

/// `[subject.traffic]`: which packets, to where.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TrafficSettings {
    /// How destinations are drawn.
    pub model: Option<Model>,
    /// How many flows.
    pub flows: Option<usize>,
    /// Frame size in bytes without FCS, or `smallest`, or `imix`.
    pub size: Option<Size>,
    /// Exponent of the Zipf model.
    pub exponent: Option<f64>,
    /// Ranges of addresses and ports of the `ranges` model, in pkt-gen's form: `198.18.10.1:2000-198.18.10.20`.
    pub source: Option<String>,
    pub destination: Option<String>,
    /// The same for IPv6.
    pub source6: Option<String>,
    pub destination6: Option<String>,
}

/// `[subject.streams.NAME]`: traffic by name, laid over `[subject.traffic]`. A family of the experiment called
/// `inet.NAME` is IPv4 with that stream, so that one experiment compares its variants on several.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StreamSettings(pub BTreeMap<String, TrafficSettings>);

impl StreamSettings {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is set here wins over `base`, stream by stream.
    pub fn laid_over(mut self, base: &Self) -> Self {
        for (name, stream) in &base.0 {
            let over = self.0.remove(name).unwrap_or_default();
            self.0.insert(name.clone(), over.laid_over(stream));
        }
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Ranges of addresses in one prefix, as the netbenches reports send.
    Netbenches,
    /// A random address in a prefix drawn uniformly from the table.
    Prefixes,
    /// Uniform over all addresses that may be forwarded.
    Addresses,
    /// As `prefixes`, with popularity by Zipf's law.
    Zipf,
    /// Every source with every destination of two ranges, as pkt-gen's -s and -d.
    Ranges,
    /// One flow.
    One,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Size {
    Bytes(usize),
    Named(NamedSize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamedSize {
    Smallest,
    Imix,
}

/// `[subject.load]`: how much, on which cores, checked how.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LoadSettings {
    /// Packets per second offered; absent means as many as the router takes.
    pub pps: Option<f64>,
    /// Where generator, router and receiver run.
    pub shape: Option<Shape>,
    /// Packets in a burst.
    pub burst: Option<usize>,
    /// Packets in the arena.
    pub packets: Option<usize>,
    /// The receiver checks one packet in this many, every one in the verification run.
    pub check_one_in: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// The quieter of the two, found by a short trial before the first run.
    Auto,
    /// Generator, router and receiver run to completion in one thread.
    OneCore,
    /// Generator and receiver on one core, the router on another.
    TwoCores,
}

/// `[subject.router]`: the algorithm under test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouterSettings {
    /// A name of the registry, or `auto`: chosen by preference among `modules`. Of several names, the first that the
    /// family has. `every` makes one variant of each algorithm that all families of the experiment have.
    pub algorithm: Option<Names>,
    /// What `auto` may choose from; names of the other family are passed over.
    pub modules: Option<Vec<String>>,
}

/// One name or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Names {
    One(String),
    Several(Vec<String>),
}

impl Names {
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Names::One(name) => std::slice::from_ref(name),
            Names::Several(names) => names,
        };
        names.iter().map(String::as_str)
    }
}

/// `[subject.lookup]`: how lookups alone are driven.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LookupSettings {
    /// What one pass over the keys does.
    pub arm: Option<Arm>,
    /// Keys in a batch of the `batch` arm.
    pub batch: Option<usize>,
    /// Keys in the stream.
    pub keys: Option<usize>,
    /// Another implementation, driven as a process: its command line.
    pub peer: Option<Peer>,
}

/// A process that answers the protocol of `peers/README.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Peer {
    /// The program.
    pub program: PathBuf,
    /// Which of its contestants, by family: it may have several.
    pub inet: Option<String>,
    pub inet6: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// One lookup after the other, keys known ahead: throughput.
    Independent,
    /// Each key depends on the answer before: latency.
    Dependent,
    /// Batches.
    Batch,
    /// The loop and the keys without any lookup: what the measurement itself costs.
    None,
}

macro_rules! lay_over {
    ($type:ty { $($field:ident),* } { $($nested:ident),* }) => {
        impl $type {
            /// What is set here wins over `base`.
            pub fn laid_over(self, base: &Self) -> Self {
                Self {
                    $($field: self.$field.or_else(|| base.$field.clone()),)*
                    $($nested: self.$nested.laid_over(&base.$nested),)*
                }
            }
        }
    };
}

lay_over!(Settings { kind } { table, traffic, streams, load, router, lookup });
lay_over!(TableSettings { source, inet, inet6, next_hops, seed, static_routes } {});
lay_over!(TrafficSettings {
    model, flows, size, exponent, source, destination, source6, destination6
} {});
lay_over!(LoadSettings { pps, shape, burst, packets, check_one_in } {});
lay_over!(RouterSettings { algorithm, modules } {});
lay_over!(LookupSettings { arm, batch, keys, peer } {});

impl fullview_lab::Settings for Settings {
    fn over(self, base: &Self) -> Self {
        self.laid_over(base)
    }
}
