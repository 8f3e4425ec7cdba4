//! `fullview filter explain`: what a rule set does with a packet, and why.

use std::fmt::Write as _;
use std::io::Write;

use anyhow::ensure;
use fullview_filter::packet::protocol::{ICMP, ICMP6, TCP, UDP, tcp};
use fullview_filter::packet::{Direction, IcmpMessage, NO_INTERFACE, Packet, Pass, TcpSegment, Transport};
use fullview_filter::pf::host::{HostFacts, HostInterface};
use fullview_filter::rule::Side;
use fullview_filter::ruleset::{RuleSet, TriedRule};
use fullview_filter::state::{FilterWorker, WorkerLimits};
use fullview_filter::verdict::{DecidedBy, Decision, Rewrite, Verdict};
use fullview_plane::verdict::RejectAnswer;
use fullview_router::error::BadInput;
use serde::Serialize;

use super::read::{self, compiled};
use crate::args::{ExplainedProtocol, FilterExplainArgs};
use crate::command::output::stdout;
use crate::command::{Exit, host_facts};

/// ICMP's and ICMPv6's echo requests (RFC 792, RFC 4443).
const ECHO: u8 = 8;
const ECHO6: u8 = 128;
/// The packet is alone: a few states are enough.
const LIMITS: WorkerLimits = WorkerLimits { states: 64, sources: 64, fragments: 8 };

/// Any: whether a rule with a probability matches follows from it.
const SEED: u64 = 1;

/// One pass of the packet.
#[derive(Serialize)]
struct ExplainedPass {
    direction: &'static str,
    interface: String,
    passes: bool,
    answer: String,
    /// The rule that decided, also by way of a state.
    rule: Option<RuleName>,
    rules: Vec<ExplainedRule>,
}

#[derive(Serialize)]
struct RuleName {
    number: u32,
    text: String,
}

#[derive(Serialize)]
struct ExplainedRule {
    #[serde(flatten)]
    name: RuleName,
    /// What about the packet it does not match; null if it matches.
    mismatch: Option<&'static str>,
    decides: bool,
}

pub fn run(args: &FilterExplainArgs) -> anyhow::Result<Exit> {
    let mut facts = host_facts::read()?;
    let mut names = vec![args.into.clone()];
    names.extend(args.out.clone());
    names.iter().for_each(|name| add(&mut facts, name));
    let interfaces = host_facts::numbered(&facts);
    let number = |name: &str| interfaces.named(name).map_or(NO_INTERFACE, |interface| interface.number);
    let set = compiled(read::name(&args.file)?, args.language, &facts, &interfaces)?;
    let mut packet = packet(args)?;
    // Two workers of one seed, so that chance decides alike: one says which rules are tried, the other decides.
    let [mut trying, mut worker] = [(); 2].map(|()| FilterWorker::new(LIMITS, set.counted_rules(), SEED));
    let mut passes = Vec::new();
    for (name, direction) in names.iter().zip([Direction::In, Direction::Out]) {
        packet.pass = Pass { direction, interface: number(name), received_on: number(&args.into) };
        let before = packet;
        let decision = set.check(&mut worker, 0, &mut packet);
        let tried = match decision.by {
            DecidedBy::Rule | DecidedBy::NewState => set.tried(&mut trying, &before),
            _ => Vec::new(),
        };
        passes.push(explained(&set, name, direction, decision, &tried));
        match decision.verdict {
            Verdict::Pass => {}
            Verdict::Translate(rewrite) => translate(&mut packet, rewrite),
            Verdict::Drop(_) | Verdict::Reject(_) => break,
        }
        trying = FilterWorker::new(LIMITS, set.counted_rules(), SEED);
        set.check(&mut trying, 0, &mut before.clone());
    }
    let mut out = stdout();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&passes)?)?,
        false => write!(out, "{}", told(&passes, args.verbose)?)?,
    }
    Ok(Exit::Done)
}

fn translate(packet: &mut Packet, rewrite: Rewrite) {
    let end = match rewrite.side {
        Side::Source => (&mut packet.source, &mut packet.source_port),
        Side::Destination => (&mut packet.destination, &mut packet.destination_port),
    };
    (*end.0, *end.1) = (rewrite.address, rewrite.port);
}

/// Adds an interface that this host does not have: the rules may be those of another.
fn add(facts: &mut HostFacts, name: &str) {
    if !facts.interfaces.iter().any(|interface| interface.name == name) {
        facts.interfaces.push(HostInterface { name: name.to_owned(), ..HostInterface::default() });
    }
}

fn packet(args: &FilterExplainArgs) -> anyhow::Result<Packet> {
    let ((source, from), (destination, to)) = (args.source.0, args.destination.0);
    let both = source.is_ipv4() == destination.is_ipv4();
    ensure!(both, BadInput("the source and the destination have to be of one address family".into()));
    let is_icmp = args.protocol == ExplainedProtocol::Icmp;
    let ports = from.is_some() && to.is_some() || is_icmp && from.is_none() && to.is_none();
    ensure!(
        ports,
        BadInput("tcp and udp need ports, as in 192.0.2.1:1000 or [2001:db8::1]:1000; icmp has none".into())
    );
    let pass = Pass { direction: Direction::In, interface: NO_INTERFACE, received_on: NO_INTERFACE };
    let ends = ((source.into(), from.unwrap_or(0)), (destination.into(), to.unwrap_or(0)));
    let mut packet = Packet::udp(pass, ends.0, ends.1);
    (packet.protocol, packet.transport) = match args.protocol {
        ExplainedProtocol::Udp => (UDP, Transport::Other),
        ExplainedProtocol::Tcp => {
            (TCP, Transport::Tcp(TcpSegment { flags: tcp::SYN, ..TcpSegment::default() }))
        }
        ExplainedProtocol::Icmp if source.is_ipv4() => (ICMP, echo(ECHO)),
        ExplainedProtocol::Icmp => (ICMP6, echo(ECHO6)),
    };
    Ok(packet)
}

fn echo(kind: u8) -> Transport {
    Transport::Icmp(IcmpMessage { kind, code: 0, id: 1, is_query: true })
}

fn explained(
    set: &RuleSet,
    interface: &str,
    direction: Direction,
    decision: Decision,
    tried: &[TriedRule],
) -> ExplainedPass {
    let index = decision.rule.map(|index| index as usize);
    let name = |rule: &fullview_filter::rule::CompiledRule| RuleName {
        number: rule.number,
        text: rule.text.clone(),
    };
    let mut rules: Vec<ExplainedRule> = Vec::new();
    for TriedRule { index: place, mismatch } in tried {
        let rule = &set.rules()[*place];
        // A rule that looks for a state first is two in the compiled form.
        rules.pop_if(|last| last.name.number == rule.number && last.name.text == rule.text);
        rules.push(ExplainedRule { name: name(rule), mismatch: *mismatch, decides: Some(*place) == index });
    }
    let rule = index.and_then(|index| set.rules().iter().chain(set.translations()).nth(index));
    ExplainedPass {
        direction: if direction == Direction::In { "in" } else { "out" },
        interface: interface.to_owned(),
        passes: matches!(decision.verdict, Verdict::Pass | Verdict::Translate(_)),
        answer: answer(decision, rule.map(|rule| rule.number)),
        rule: rule.map(name),
        rules,
    }
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Source => "source",
        Side::Destination => "destination",
    }
}

/// What becomes of the packet, and by what.
fn answer(decision: Decision, rule: Option<u32>) -> String {
    let verdict = match decision.verdict {
        Verdict::Pass => "passes".to_owned(),
        Verdict::Drop(reason) => format!("is dropped ({})", reason.name()),
        Verdict::Reject(with) => format!("is rejected, and answered by {}", RejectAnswer::from(&with)),
        Verdict::Translate(rewrite) => {
            format!(
                "passes with the {} {}:{}",
                side(rewrite.side),
                std::net::IpAddr::from(rewrite.address),
                rewrite.port
            )
        }
    };
    let rule = rule.map_or_else(|| "the default".to_owned(), |number| format!("rule {number}"));
    let by = match decision.by {
        DecidedBy::Rule => format!("by {rule}"),
        DecidedBy::NewState => format!("by {rule}, which makes a state"),
        DecidedBy::State => format!("by its state, which {rule} made"),
        DecidedBy::QuotedState => "by the state of the packet that it quotes".to_owned(),
        DecidedBy::Skipped => "because the interface is not filtered".to_owned(),
    };
    format!("{verdict} {by}")
}

fn told(passes: &[ExplainedPass], all: bool) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for pass in passes {
        writeln!(text, "{} on {}: the packet {}", pass.direction, pass.interface, pass.answer)?;
        let mut others = 0;
        for ExplainedRule { name, mismatch, decides } in &pass.rules {
            let why = match mismatch {
                None if *decides => "matches, and decides".to_owned(),
                None => "matches".to_owned(),
                Some(subject) => format!("does not match {subject}"),
            };
            if all || mismatch.is_none() {
                writeln!(text, "  rule {}: {}: {why}", name.number, name.text)?;
            } else {
                others += 1;
            }
        }
        if others > 0 {
            let rules = if others == 1 { "rule does" } else { "rules do" };
            writeln!(text, "  {others} other {rules} not match; -v says why")?;
        }
    }
    Ok(text)
}
