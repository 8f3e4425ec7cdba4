//! The arguments of `fullview filter`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use fullview_filter::address_table::TableEntry;
use fullview_router::control::table_key::TableKey;
use fullview_router::filter::FilterLanguage;

use super::operations::{RouterArgs, StateChoice};

/// A name that the kernel accepts for an interface.
fn interface(text: &str) -> Result<String, String> {
    let fits = (1..=15).contains(&text.len());
    let is_name = fits && !text.contains(['/', ':']) && !text.contains(char::is_whitespace);
    let wrong = || "names of interfaces have 1 to 15 bytes, and no blank, slash or colon".to_owned();
    is_name.then(|| text.to_owned()).ok_or_else(wrong)
}

#[derive(Debug, Subcommand)]
pub enum FilterCommand {
    /// Check a rule set in the language of FreeBSD's pf.conf or ipfw
    Check(FilterCheckArgs),
    /// Say what a rule set does with a packet, and why
    Explain(FilterExplainArgs),
    /// Show, test or change a table of addresses of a running router
    Table(FilterTableArgs),
    /// Remove states of a running router: their flows have to pass the rules again
    Kill(FilterKillArgs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "The states are those that `fullview show states` lists with the same conditions. A TCP connection whose states \
are gone passes only if the rules let segments in the middle of a connection in.

Examples:
  fullview filter kill 192.0.2.9
  fullview filter kill 198.51.100.0/24 --protocol tcp
  fullview filter kill --rule 3"
)]
pub struct FilterKillArgs {
    #[command(flatten)]
    pub choice: StateChoice,
    /// All states
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub router: RouterArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Names of interfaces stand for the addresses that they have on this host. docs/reference/filter.md says which \
part of pf.conf and ipfw is supported.

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
    #[arg(long, value_name = "LANGUAGE", value_enum, default_value_t = FilterLanguage::Pf)]
    pub language: FilterLanguage,
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
    after_help = "The packet is the first of its flow: no state knows it. It passes the interface that it comes in by and then \
the one that it goes out by, with the rules' answer for each. Interfaces that this host does not have are \
assumed to exist, without addresses.

Exit codes:
  0    explained
  2    the rule set is wrong, or the packet is none

Examples:
  fullview filter explain rules.conf --in eth1 --out eth2 udp 192.0.2.1:1000 198.51.100.7:53
  fullview filter explain --language ipfw ipfw.rules --in eth1 icmp 192.0.2.1 198.51.100.7"
)]
pub struct FilterExplainArgs {
    /// The language of the rule set
    #[arg(long, value_name = "LANGUAGE", value_enum, default_value_t = FilterLanguage::Pf)]
    pub language: FilterLanguage,
    /// The interface that the packet comes in by
    #[arg(long = "in", value_name = "NAME", value_parser = interface)]
    pub into: String,
    /// The interface that it leaves by; without one, only its way in is explained
    #[arg(long, value_name = "NAME", value_parser = interface)]
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

#[derive(Debug, Args)]
#[command(
    after_help = "A change counts for flows that have no state yet. It lasts until the router ends, or until a reload of rules \
that say which addresses the table has (docs/reference/filter.md). Entries are addresses and prefixes, or numbers in a \
table of ipfw with `type number`; with pf `!` in front of one excepts it, with ipfw `=N` behind one is its \
value. All entries of a command are applied at once, or none.

Exit codes:
  0    done; of `test`: the table contains the address
  1    it could not be done; of `test`: the table does not contain the address
  2    wrong arguments, or a file with a wrong entry: the message names the line; of `test`: there
       is no answer

Examples:
  fullview filter table bad show
  fullview filter table bad test 192.0.2.1
  fullview filter table bad add 192.0.2.1 198.51.100.0/24
  fullview filter table bad delete 192.0.2.1
  fullview filter table bad replace --file bad.txt"
)]
pub struct FilterTableArgs {
    /// The table's name
    #[arg(value_name = "NAME")]
    pub table: String,
    #[command(subcommand)]
    pub what: FilterTableCommand,
    #[command(flatten)]
    pub router: RouterArgs,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum FilterTableCommand {
    /// List the entries
    Show,
    /// Say whether the table contains an address, or a number
    Test {
        #[arg(value_name = "ADDRESS")]
        address: TableKey,
    },
    /// Add entries
    Add(TableEntries),
    /// Delete entries
    Delete(TableEntries),
    /// Give the table these entries and no others
    Replace(TableEntries),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct TableEntries {
    /// Addresses and prefixes, or numbers
    #[arg(value_name = "ADDRESS")]
    pub entries: Vec<TableEntry>,
    /// Also those in this file, between blanks; `#` and `;` begin comments
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}
