//! The arguments of `fullview filter`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum FilterCommand {
    /// Check a rule set in the language of FreeBSD's pf.conf or ipfw
    Check(FilterCheckArgs),
    /// Say what a rule set does with a packet, and why
    Explain(FilterExplainArgs),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RulesLanguage {
    /// That of pf.conf
    Pf,
    /// That of ipfw scripts
    Ipfw,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Names of interfaces stand for the addresses that they have on this host. docs/reference/filter.md says which part \
of pf.conf and ipfw is supported.

Exit codes:
  0    the rule set is correct
  2    it is not: the message names the file, the line and the column, and says how to fix it

Examples:
  fullview filter check /etc/pf.conf
  fullview filter check -v rules.conf
  fullview filter check --language ipfw /etc/ipfw.rules"
)]
pub struct FilterCheckArgs {
    /// Print the rules after expansion, as `pfctl -nv` or `ipfw list` does
    #[arg(long, short)]
    pub verbose: bool,
    /// The language of the rule set
    #[arg(long, value_name = "LANGUAGE", value_enum, default_value_t = RulesLanguage::Pf)]
    pub language: RulesLanguage,
    /// The rule set
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExplainedProtocol {
    /// A SYN
    Tcp,
    Udp,
    /// An echo request
    Icmp,
}

/// An address, and a port if there is one.
#[derive(Debug, Clone, Copy)]
pub struct PacketEnd(pub (IpAddr, Option<u16>));

fn packet_end(text: &str) -> Result<PacketEnd, String> {
    let with_port = text.parse::<SocketAddr>().map(|end| (end.ip(), Some(end.port())));
    let end = with_port.or_else(|_| text.parse::<IpAddr>().map(|address| (address, None)));
    end.map(PacketEnd)
        .map_err(|_| "give an address, or one with a port: 192.0.2.1:80, [2001:db8::1]:80".to_owned())
}

#[derive(Debug, Args)]
#[command(
    after_help = "The packet is the first of its flow: no state knows it. It passes the interface that it comes in by and then the one
that it goes out by, with the rules' answer for each. Interfaces that this host does not have are assumed to exist, without
addresses.

Exit codes:
  0    explained
  2    the rule set is wrong, or the packet is none

Examples:
  fullview filter explain rules.conf --in eth1 --out eth2 udp 192.0.2.1:1000 198.51.100.7:53
  fullview filter explain --language ipfw ipfw.rules --in eth1 icmp 192.0.2.1 198.51.100.7"
)]
pub struct FilterExplainArgs {
    /// The language of the rule set
    #[arg(long, value_name = "LANGUAGE", value_enum, default_value_t = RulesLanguage::Pf)]
    pub language: RulesLanguage,
    /// The interface that the packet comes in by
    #[arg(long = "in", value_name = "NAME")]
    pub into: String,
    /// The interface that it leaves by; without one, only its way in is explained
    #[arg(long, value_name = "NAME")]
    pub out: Option<String>,
    /// Also say why each rule that does not match does not
    #[arg(long, short)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The rule set
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[arg(value_name = "PROTOCOL", value_enum)]
    pub protocol: ExplainedProtocol,
    /// Source address, with a port for tcp and udp
    #[arg(value_name = "SOURCE", value_parser = packet_end)]
    pub source: PacketEnd,
    /// Destination address, with a port for tcp and udp
    #[arg(value_name = "DESTINATION", value_parser = packet_end)]
    pub destination: PacketEnd,
}
