//! Routes of the machine by a link that fails, with their next-hop objects. The kernel removes both with the link.

use super::machine::{MachineError, ip};

/// Lines of `ip` that set the routes by an interface again, of all tables, and first the objects that they use.
pub fn own_routes(interface: &str) -> Result<Vec<String>, MachineError> {
    let objects = own_objects(interface);
    let groups = groups_of(&objects);
    let lines = objects.iter().chain(&groups).map(|object| replace_object(object));
    let mut lines: Vec<String> = lines.collect();
    for family in ["-4", "-6"] {
        lines.extend(routes_by(family, interface)?);
        lines.extend(routes_of_groups(family, &groups)?);
    }
    Ok(lines)
}

/// The next-hop objects with the interface, as `ip` shows them. Kernels before 5.3 have none, and refuse to show them.
fn own_objects(interface: &str) -> Vec<String> {
    lines_of(&ip(&format!("nexthop show dev {interface}")).unwrap_or_default())
}

/// The groups that have one of these objects: they lose it with the link, and the last one takes the group with it.
fn groups_of(objects: &[String]) -> Vec<String> {
    let ids: Vec<&str> = objects.iter().filter_map(|object| value(object, "id")).collect();
    let mut groups = lines_of(&ip("nexthop show groups").unwrap_or_default());
    groups.retain(|group| members(group).any(|member| ids.contains(&member)));
    groups
}

/// The members of `id 10 group 5,2/6`, of which the first one has a weight.
fn members(group: &str) -> impl Iterator<Item = &str> {
    let members = value(group, "group").unwrap_or_default().split('/');
    members.filter_map(|member| member.split(',').next())
}

/// What the kernel finds out itself is shown, and not taken.
fn replace_object(object: &str) -> String {
    format!("nexthop replace {}", without(object, &["scope", "unbalanced_time"]))
}

fn routes_by(family: &str, interface: &str) -> Result<Vec<String>, MachineError> {
    let shown = lines_of(&ip(&format!("{family} route show table all dev {interface}"))?);
    let own = shown.iter().filter(|route| !comes_back(route));
    Ok(own.map(|route| replace_route(family, route, interface)).collect())
}

/// Such a route comes back with the addresses of the interface, or with the next router advertisement.
fn comes_back(route: &str) -> bool {
    ["proto kernel", "proto ra"].iter().any(|origin| route.contains(origin))
}

/// A route with an object has what `via` and `dev` say from there, and the kernel takes either.
fn replace_route(family: &str, route: &str, interface: &str) -> String {
    match value(route, "nhid") {
        Some(_) => format!("{family} route replace {}", without(route, &["via", "dev"])),
        None => format!("{family} route replace {route} dev {interface}"),
    }
}

/// The routes by these groups, which `ip` shows with no interface.
fn routes_of_groups(family: &str, groups: &[String]) -> Result<Vec<String>, MachineError> {
    let ids: Vec<&str> = groups.iter().filter_map(|group| value(group, "id")).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut shown = lines_of(&ip(&format!("-oneline {family} route show table all"))?);
    shown.retain(|route| value(route, "nhid").is_some_and(|id| ids.contains(&id)));
    // Behind it are the members.
    let without_members = |route: &String| route.split(" \\").next().map(str::to_owned);
    let routes = shown.iter().filter_map(without_members);
    Ok(routes.map(|route| format!("{family} route replace {route}")).collect())
}

fn lines_of(shown: &str) -> Vec<String> {
    shown.lines().map(|line| line.trim().to_owned()).collect()
}

/// The word behind a word.
fn value<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let mut words = line.split_whitespace().skip_while(|word| *word != name);
    words.nth(1)
}

/// The line without these words and their values; that of `via` may begin with a family.
fn without(line: &str, names: &[&str]) -> String {
    let (mut words, mut kept) = (line.split_whitespace(), Vec::new());
    while let Some(word) = words.next() {
        if !names.contains(&word) {
            kept.push(word);
        } else if matches!(words.next(), Some("inet" | "inet6")) {
            words.next();
        }
    }
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_set_again_by_its_object_or_by_its_gateway() {
        for (shown, line) in [
            (
                "10.1.0.0/16 via 10.0.2.2 metric 5",
                "-4 route replace 10.1.0.0/16 via 10.0.2.2 metric 5 dev eth2",
            ),
            (
                "10.1.0.0/16 nhid 7 tos 0x04 via inet6 2001:db8::9 proto static metric 5",
                "-4 route replace 10.1.0.0/16 nhid 7 tos 0x04 proto static metric 5",
            ),
            ("10.1.0.0/16 nhid 8 src 10.0.2.1", "-4 route replace 10.1.0.0/16 nhid 8 src 10.0.2.1"),
        ] {
            assert_eq!(replace_route("-4", shown, "eth2"), line);
        }
    }

    #[test]
    fn an_object_is_set_again_without_what_the_kernel_finds_out() {
        for (shown, line) in [
            ("id 5 via 10.0.2.2 dev eth2 scope link proto zebra", "id 5 via 10.0.2.2 dev eth2 proto zebra"),
            (
                "id 11 group 5,2/6 type resilient buckets 8 unbalanced_timer 0 unbalanced_time 0",
                "id 11 group 5,2/6 type resilient buckets 8 unbalanced_timer 0",
            ),
        ] {
            assert_eq!(replace_object(shown), format!("nexthop replace {line}"));
        }
        assert_eq!(members("id 11 group 5,2/6 type mpath").collect::<Vec<_>>(), ["5", "6"]);
    }
}
