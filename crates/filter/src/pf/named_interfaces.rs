//! The interfaces that a rule set names.

use crate::pf::address::PfAddress;
use crate::pf::config::{PfConfig, PfOption, PfSetting};
use crate::pf::error::Position;
use crate::pf::pool::PfPool;
use crate::pf::rule::{PfAction, PfRule};

/// The name of an interface or of a group, and where it stands.
pub type NamedAt<'a> = (&'a Position, &'a str);

/// The interfaces and groups that rules and `set skip` name, with those in files that `load anchor` reads.
pub fn named_interfaces(config: &PfConfig) -> Vec<NamedAt<'_>> {
    let mut found = Vec::new();
    collect(config, &mut found);
    found
}

fn collect<'a>(config: &'a PfConfig, found: &mut Vec<NamedAt<'a>>) {
    for setting in &config.settings {
        if let PfSetting::Option { position, option: PfOption::Skip(names) } = setting {
            found.extend(names.iter().map(|name| (position, name.as_str())));
        }
    }
    let rules = &config.rules;
    let kinds = [&rules.scrub, &rules.nat, &rules.rdr, &rules.binat, &rules.filter];
    kinds.into_iter().flatten().for_each(|rule| of_rule(rule, found));
    config.loaded.iter().for_each(|anchor| collect(&anchor.config, found));
}

fn of_rule<'a>(rule: &'a PfRule, found: &mut Vec<NamedAt<'a>>) {
    let tests = [rule.interface.as_ref(), rule.options.received_on.as_ref()].into_iter().flatten();
    let tests = tests.map(|test| test.name.as_str()).filter(|name| *name != "any");
    let pools = [rule.nat.as_ref(), rule.rdr.as_ref()].into_iter().flatten();
    let addresses = [&rule.from.host.address, &rule.to.host.address].into_iter();
    let addresses = addresses.chain(pools.flat_map(|pool: &PfPool| &pool.addresses)).filter_map(of_address);
    found.extend(tests.chain(addresses).map(|name| (&rule.position, name)));
    if let PfAction::Anchor(call) = &rule.action {
        call.body.iter().for_each(|rule| of_rule(rule, found));
    }
}

fn of_address(address: &PfAddress) -> Option<&str> {
    match address {
        PfAddress::Dynamic(dynamic) => Some(&dynamic.interface),
        _ => None,
    }
}
