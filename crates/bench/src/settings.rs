//! What an experiment can set about its subject. Every field is optional, so that a variant sets only what differs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fmt, io};

use fullview_router::algorithm::RouterSettings;
use fullview_router::filter::FilterLanguage;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Everything under `[subject]`, and under `set` of a variant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// What is measured: a whole forwarding path, lookups alone, changes of routes, a forwarding path inside the
    /// kernel, real clients over a router, or packets through a device in a test bed.
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
    pub filter: FilterSettings,
    /// Destinations that each worker's route cache has room for, for each table and family; none without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_cache: Option<usize>,
    #[serde(default)]
    pub lookup: LookupSettings,
    #[serde(default)]
    pub updates: UpdateSettings,
    #[serde(default)]
    pub kernel: KernelSettings,
    #[serde(default)]
    pub veth: VethSettings,
    #[serde(default)]
    pub testbed: DutSettings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Forward,
    Lookup,
    Updates,
    Kernel,
    Veth,
    Testbed,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Forward => "forward",
            Kind::Lookup => "lookup",
            Kind::Updates => "updates",
            Kind::Kernel => "kernel",
            Kind::Veth => "veth",
            Kind::Testbed => "testbed",
        })
    }
}

/// `[subject.table]`: the routes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TableSettings {
    /// One of [`TableSettings::NAMED`], or a path to a table file.
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

impl TableSettings {
    /// Sources that are no files.
    pub const NAMED: [&str; 2] = ["synthetic", "two-routes"];
}

/// `[subject.filter]`: the rules that packets pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FilterSettings {
    /// The language of the rules; without one nothing is filtered.
    pub language: Option<FilterLanguage>,
    /// The text of the rules. Interfaces are `port0`, where packets come in, and `port1` and so on, where they leave.
    pub rules: Option<String>,
    /// Room for states, instead of what the rules say (`set limit states`) or 100,000.
    pub states: Option<u32>,
    /// Rules before these that no packet matches.
    pub other_rules: Option<u32>,
    /// Addresses of a table, none of which any packet has.
    pub table_addresses: Option<u32>,
    /// Room for flows whose packets need no rules, instead of what the room for states leads to.
    pub known_flows: Option<u32>,
}

/// `[subject.traffic]`: which packets, to where.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TrafficSettings {
    /// How destinations are drawn.
    pub model: Option<ModelName>,
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
    /// What real clients send.
    #[serde(default)]
    pub client: ClientSettings,
}

/// `[subject.traffic.client]`: what real clients send.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClientSettings {
    pub load: Option<ClientName>,
    /// Connections at a time.
    pub connections: Option<u16>,
    /// Bytes of a UDP payload, or of the answer to an HTTP request.
    pub bytes: Option<u16>,
    /// What the interfaces of hosts and router leave to each other.
    pub offloads: Option<Offloads>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientName {
    /// iperf3 by TCP, from left to right.
    Tcp,
    /// iperf3 by TCP, from right to left.
    TcpBack,
    /// iperf3 by UDP, as fast as it sends.
    Udp,
    /// curl, which makes one request after the other on each connection.
    Http,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Offloads {
    /// As the kernel makes veth devices: checksums and segments are left unfinished.
    Default,
    /// As from a wire: senders finish both, receivers merge segments (GRO).
    Wire,
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
pub enum ModelName {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Size {
    Bytes(usize),
    Named(NamedSize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamedSize {
    Smallest,
    Imix,
}

/// A size as the command line has it.
impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        match text {
            "smallest" => Ok(Size::Named(NamedSize::Smallest)),
            "imix" => Ok(Size::Named(NamedSize::Imix)),
            bytes => bytes.parse().map(Size::Bytes).map_err(|_| format!("expected {SIZE}")),
        }
    }
}

const SIZE: &str = "a frame size in bytes without FCS, \"smallest\" or \"imix\"";

// By hand, like `Names`, because an untagged enum would not say what is expected.
impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WrittenSize)
    }
}

struct WrittenSize;

impl Visitor<'_> for WrittenSize {
    type Value = Size;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SIZE)
    }

    fn visit_i64<E: Error>(self, bytes: i64) -> Result<Size, E> {
        usize::try_from(bytes)
            .map(Size::Bytes)
            .map_err(|_| E::invalid_value(Unexpected::Signed(bytes), &self))
    }

    fn visit_u64<E: Error>(self, bytes: u64) -> Result<Size, E> {
        usize::try_from(bytes)
            .map(Size::Bytes)
            .map_err(|_| E::invalid_value(Unexpected::Unsigned(bytes), &self))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Size, E> {
        match name.parse() {
            Ok(Size::Named(named)) => Ok(Size::Named(named)),
            _ => Err(E::invalid_value(Unexpected::Str(name), &self)),
        }
    }
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
    /// The receiver checks one packet in this many, every one in the verification.
    pub check_one_in: Option<u32>,
    /// The last stage of the loop; absent means the whole loop.
    pub through: Option<LoopStage>,
    /// Whether the loop asks for the table's memory ahead (default true).
    pub prefetch: Option<bool>,
    /// Egress ports; next hops are spread over them in turn. One unless set.
    pub ports: Option<u16>,
    /// Another router, driven as a process, instead of ours.
    pub peer: Option<Peer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoopStage {
    /// Checks headers and gathers destinations.
    Parse,
    /// Also looks next hops up.
    Lookup,
    /// Also rewrites packets, but does not sort them by egress port.
    Rewrite,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// The quieter of the two, found by a short trial before the first panel.
    Auto,
    /// Generator, router and receiver run to completion in one thread.
    OneCore,
    /// Generator and receiver on one core, the router on another.
    TwoCores,
}

/// `[subject.lookup]`: how lookups alone are driven.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LookupSettings {
    /// What one pass over the keys does.
    pub arm: Option<LookupArm>,
    /// Keys in a batch of the `batch` arm.
    pub batch: Option<usize>,
    /// Keys in the stream.
    pub keys: Option<usize>,
    /// Another implementation, driven as a process: its command line.
    pub peer: Option<Peer>,
}

/// `[subject.updates]`: how routes change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct UpdateSettings {
    /// [`UpdateSettings::SYNTHETIC`], or a path to a trace of BGP updates.
    pub source: Option<String>,
    /// Changes of a synthetic stream.
    pub changes: Option<usize>,
    /// Changes that the table gets together.
    pub batch: Option<usize>,
}

impl UpdateSettings {
    /// The source that is no file.
    pub const SYNTHETIC: &str = "synthetic";
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
pub enum LookupArm {
    /// One lookup after the other, keys known ahead: throughput.
    Independent,
    /// Each key depends on the answer before: latency.
    Dependent,
    /// Keys in batches of `lookup.batch`.
    Batch,
    /// The loop and the keys without any lookup: what the measurement itself costs.
    None,
}

/// `[subject.kernel]`: a forwarding path inside the kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KernelSettings {
    /// The forwarder under test.
    pub forwarder: Option<KernelForwarder>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelForwarder {
    /// The kernel's own path.
    IpForward,
    /// An XDP program that asks the kernel's tables by its helper.
    FibLookup,
    /// An XDP program that sends everything to one station, without lookup.
    Redirect,
    /// Our tables in our XDP program.
    Engine,
}

/// `[subject.veth]`: a router between real clients.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct VethSettings {
    /// [`VethSettings::KERNEL`], or a word of `fullview forward --engine`.
    pub engine: Option<String>,
    /// Further arguments of `fullview forward`.
    pub options: Option<Vec<String>>,
    /// Lines for the shell, which run in the router's namespace before it forwards.
    pub start: Option<Vec<String>>,
}

impl VethSettings {
    /// The kernel alone.
    pub const KERNEL: &str = "kernel";
}

/// `[subject.testbed]`: the device between a generator and a receiver.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DutSettings {
    /// [`DutSettings::KERNEL`], or a word of `fullview forward --engine`.
    pub device: Option<String>,
    /// Further arguments of `fullview forward`.
    pub options: Option<Vec<String>>,
    /// Lines for the shell, which run in the device's namespace before it forwards.
    pub start: Option<Vec<String>>,
    /// Whether the device's kernel sends ICMP redirects (default false).
    pub redirects: Option<bool>,
    /// What sends the packets (default a socket); the same for all devices.
    pub generator: Option<BedGenerator>,
}

/// What sends the packets of a test bed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BedGenerator {
    /// A packet socket: the flows of the traffic.
    Socket,
    /// A program in the kernel, which is several times as fast: the destinations of the traffic.
    Live,
}

impl DutSettings {
    /// The kernel's own forwarding.
    pub const KERNEL: &str = "kernel";
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

impl Settings {
    /// Paths that mean the same from every folder.
    pub fn make_absolute(&mut self) -> io::Result<()> {
        if let Some(source) = &mut self.table.source
            && !TableSettings::NAMED.contains(&source.as_str())
        {
            *source = absolute(Path::new(source))?;
        }
        if let Some(source) = &mut self.updates.source
            && source != UpdateSettings::SYNTHETIC
        {
            *source = absolute(Path::new(source))?;
        }
        // A program named without a folder is looked for in PATH.
        for peer in [&mut self.lookup.peer, &mut self.load.peer].into_iter().flatten() {
            if peer.program.components().count() > 1 {
                peer.program = absolute(&peer.program)?.into();
            }
        }
        Ok(())
    }

    /// The kind of subject; a forwarding path unless the experiment names another.
    pub fn kind(&self) -> Kind {
        self.kind.unwrap_or(Kind::Forward)
    }
}

fn absolute(path: &Path) -> io::Result<String> {
    let not_utf8 = |_| io::Error::new(io::ErrorKind::InvalidFilename, "the path of this folder is not UTF-8");
    std::path::absolute(path)?.into_os_string().into_string().map_err(not_utf8)
}

lay_over!(Settings { kind, route_cache } {
    table, traffic, streams, load, router, filter, lookup, updates, kernel, veth, testbed
});
lay_over!(FilterSettings { language, rules, states, other_rules, table_addresses, known_flows } {});
lay_over!(TableSettings { source, inet, inet6, next_hops, seed, static_routes } {});
lay_over!(TrafficSettings {
    model, flows, size, exponent, source, destination, source6, destination6
} { client });
lay_over!(ClientSettings { load, connections, bytes, offloads } {});
lay_over!(VethSettings { engine, options, start } {});
lay_over!(DutSettings { device, options, start, redirects, generator } {});
lay_over!(LoadSettings { pps, shape, burst, packets, check_one_in, through, prefetch, ports, peer } {});
lay_over!(LookupSettings { arm, batch, keys, peer } {});
lay_over!(UpdateSettings { source, changes, batch } {});
lay_over!(KernelSettings { forwarder } {});

impl fullview_lab::Settings for Settings {
    fn over(self, base: &Self) -> Self {
        self.laid_over(base)
    }
}
