//! Lines of an inventory that start a generator or a receiver, with names in braces for what differs between trials.

/// The names that a line may have.
#[derive(Debug)]
pub struct LineNames {
    pub known: &'static [&'static str],
    /// Those without which it would not do what it is asked.
    pub needed: &'static [&'static str],
}

/// Of what sends. `pps` is 0 for as fast as possible.
pub const SEND: LineNames = LineNames {
    known: &["interface", "pps", "packets", "bytes", "source", "destination", "source-mac", "next-hop-mac"],
    needed: &["pps", "packets"],
};
/// Of what receives.
pub const RECEIVE: LineNames = LineNames { known: &["interface"], needed: &[] };

impl LineNames {
    /// Refuses a line with a name that does not exist, and one without a name that it needs.
    pub fn check(&self, line: &str) -> Result<(), String> {
        if line.trim().is_empty() {
            return Err("it is empty".into());
        }
        let found: Vec<&str> = parts(line).filter_map(|(_, name)| name).collect();
        if let Some(unknown) = found.iter().find(|name| !self.known.contains(name)) {
            return Err(format!("there is no {{{unknown}}}; there are {}", braced(self.known)));
        }
        let missing: Vec<&str> = self.needed.iter().filter(|name| !found.contains(name)).copied().collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("it needs {}", braced(&missing))) }
    }
}

/// The line with values.
pub fn fill(line: &str, values: &[(&str, String)]) -> String {
    let value = |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    parts(line).flat_map(|(text, name)| [text, name.and_then(value).unwrap_or_default()]).collect()
}

fn braced(names: &[&str]) -> String {
    names.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(", ")
}

/// Pieces of text, each with the name in braces after it. Braces after a dollar sign, and around what is no word, are the
/// shell's.
fn parts(line: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let whole = Some(rest).filter(|rest| !rest.is_empty())?;
        let Some((text, name, next)) = first_name(whole) else {
            rest = "";
            return Some((whole, None));
        };
        rest = next;
        Some((text, Some(name)))
    })
}

/// What stands before the first name, the name, and what follows it.
fn first_name(line: &str) -> Option<(&str, &str, &str)> {
    line.match_indices('{').find_map(|(open, _)| {
        let (name, rest) = line[open + 1..].split_once('}')?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        let is_name = !name.is_empty() && name.chars().all(is_word) && !line[..open].ends_with('$');
        is_name.then_some((&line[..open], name, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_known_names_and_those_that_it_needs() {
        assert_eq!(SEND.check("pkt-gen -i {interface} -R {pps} -n {packets} ${HOME} {A,b} {}"), Ok(()));
        let said = SEND.check("pkt-gen -R {pps} -n {packets} -d {target}").unwrap_err();
        assert!(said.starts_with("there is no {target}; there are {interface}, {pps}"), "{said}");
        assert_eq!(SEND.check("pkt-gen").unwrap_err(), "it needs {pps}, {packets}");
        for wrong in ["{source_mac}", "{Source}", "{ip4}"] {
            let said = SEND.check(&format!("pkt-gen {{pps}} {{packets}} {wrong}")).unwrap_err();
            assert!(said.starts_with(&format!("there is no {wrong}")), "{said}");
        }
        assert_eq!(RECEIVE.check(" ").unwrap_err(), "it is empty");
        assert_eq!(RECEIVE.check("pkt-gen -f rx"), Ok(()));
        assert!(RECEIVE.check("{pps}").is_err());
    }

    #[test]
    fn values_take_the_place_of_names() {
        let values = [("pps", "7".to_owned()), ("packets", "70".to_owned())];
        assert_eq!(fill("a {pps}{packets} ${pps} {A,b} {pps}", &values), "a 770 ${pps} {A,b} 7");
    }
}
