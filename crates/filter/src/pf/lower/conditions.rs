//! What a rule asks of a packet, as clauses.

use crate::packet::protocol::TCP;
use crate::pf::error::PfResult;
use crate::pf::lower::names::PfNames;
use crate::pf::lower::peers::peer;
use crate::pf::rule::{FlagTest, InterfaceTest, PfRule};
use crate::rule::{ByteSet, Clause, FragmentTest, InterfaceSet, Literal, Side, Test};

/// The bits of the type of service by which routers mark congestion (RFC 3168): pf leaves them out of the comparison.
const ECN: u8 = 3;

/// The conditions of a rule of any kind.
pub fn clauses(rule: &PfRule, names: &mut PfNames) -> PfResult<Vec<Clause>> {
    let mut clauses = head(rule, names);
    clauses.extend(peer(rule, &rule.from, Side::Source, names)?);
    clauses.extend(peer(rule, &rule.to, Side::Destination, names)?);
    clauses.extend(header(rule));
    clauses.extend(marks(rule, names));
    Ok(clauses)
}

fn head(rule: &PfRule, names: &PfNames) -> Vec<Clause> {
    let mut clauses = Vec::new();
    clauses.extend(rule.direction.map(|direction| Clause::of(Test::Direction(direction))));
    clauses.extend(rule.interface.as_ref().map(|test| on(test, names, Test::Interface)));
    clauses.extend(rule.options.received_on.as_ref().map(|test| on(test, names, Test::ReceivedOn)));
    clauses.extend(rule.family.map(|family| Clause::of(Test::Family(family))));
    clauses.extend(rule.protocol.map(|protocol| Clause::of(Test::Protocol(ByteSet::from_iter([protocol])))));
    clauses
}

fn on(test: &InterfaceTest, names: &PfNames, of: fn(InterfaceSet) -> Test) -> Clause {
    let set = of(names.interface_set(&test.name));
    if test.not { Clause::not(set) } else { Clause::of(set) }
}

fn header(rule: &PfRule) -> Vec<Clause> {
    let mut clauses = Vec::new();
    if rule.flags != FlagTest::ANY {
        clauses.push(flags(rule.flags, rule.protocol));
    }
    if let Some(test) = rule.icmp {
        clauses.push(Clause::of(Test::IcmpType(ByteSet::from_iter([test.kind]))));
        clauses.extend(test.code.map(|code| Clause::of(Test::IcmpCode(code))));
    }
    clauses.extend(rule.options.tos.map(|value| Clause::of(Test::Tos { value, mask: !ECN })));
    clauses.extend(rule.options.max_packet_size.map(|size| Clause::of(Test::Length(0, size))));
    clauses.extend(rule.options.fragment.then(|| Clause::of(Test::Fragment(FragmentTest::Any))));
    clauses
}

/// Flags are a question to TCP only: other protocols pass it.
fn flags(test: FlagTest, protocol: Option<u8>) -> Clause {
    let mut clause = Clause::of(Test::TcpFlags { set: test.set, mask: test.of });
    if protocol.is_none() {
        clause.0.push(Literal { negated: true, test: Test::Protocol(ByteSet::from_iter([TCP])) });
    }
    clause
}

fn marks(rule: &PfRule, names: &mut PfNames) -> Vec<Clause> {
    let mut clauses = Vec::new();
    if let Some(tagged) = &rule.options.tagged {
        let test = Test::Tagged(names.tag(&tagged.name));
        clauses.push(if tagged.not { Clause::not(test) } else { Clause::of(test) });
    }
    clauses.extend(rule.options.probability.map(|probability| Clause::of(Test::Probability(probability.0))));
    clauses
}
