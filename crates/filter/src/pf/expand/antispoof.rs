//! `antispoof`: addresses of an interface come from this interface only.

use crate::packet::Direction;
use crate::pf::address::{InterfaceAddresses, InterfaceModifiers, InterfacePart};
use crate::pf::host::HostFacts;
use crate::pf::parse::rules::everything;
use crate::pf::rule::{BlockReply, InterfaceTest};
use crate::pf::syntax::{
    ActionSyntax, AntispoofInterface, AntispoofSyntax, HostKind, HostSyntax, RuleSyntax,
};

/// The rules that it stands for.
pub fn rules(antispoof: &AntispoofSyntax, facts: &HostFacts) -> Vec<RuleSyntax> {
    let mut rules = Vec::new();
    for interface in &antispoof.interfaces {
        let from_network = from(antispoof, interface, Some(InterfacePart::Network));
        let elsewhere = vec![InterfaceTest { not: true, name: interface.name.clone() }];
        rules.push(RuleSyntax { interfaces: elsewhere, ..from_network });
        if !facts.named(&interface.name).any(|one| one.loopback) {
            rules.push(from(antispoof, interface, None));
        }
    }
    rules
}

/// Blocks what comes from addresses of the interface.
fn from(
    antispoof: &AntispoofSyntax,
    interface: &AntispoofInterface,
    part: Option<InterfacePart>,
) -> RuleSyntax {
    let action = ActionSyntax::Block(Some(BlockReply::Drop));
    let mut rule = everything(action, antispoof.position.clone());
    rule.direction = Some(Direction::In);
    (rule.log, rule.quick, rule.family) = (antispoof.log, antispoof.quick, antispoof.family);
    rule.options.common = antispoof.options.clone();
    let kind = addresses(interface, part);
    rule.from.hosts = vec![HostSyntax { position: interface.position.clone(), not: false, kind }];
    rule
}

fn addresses(interface: &AntispoofInterface, part: Option<InterfacePart>) -> HostKind {
    let name = interface.name.clone();
    let modifiers = InterfaceModifiers { part, first_only: false };
    match interface.dynamic {
        true => HostKind::Dynamic(InterfaceAddresses { interface: name, modifiers, length: None }),
        false if part.is_some() => HostKind::Name { text: format!("{name}:network"), length: None },
        false => HostKind::Name { text: name, length: None },
    }
}
