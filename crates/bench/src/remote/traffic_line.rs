//! Lines of an inventory that start a generator or a receiver, with names in braces for what differs between trials.

/// The names that a line may have.
#[derive(Debug)]
pub struct LineNames {
    pub known: &'static [&'static str],
    /// Those without which it would not do what it is asked.
    pub needed: &'static [&'static str],
}

/// Of what sends. `pps` and `packets` are 0 for as fast as possible and without end.
pub const SEND: LineNames = LineNames {
    known: &["interface", "pps", "packets", "bytes", "source", "destination", "source-mac", "next-hop-mac"],
    needed: &["pps", "packets"],
};
/// Of what receives.
pub const RECEIVE: LineNames = LineNames { known: &["interface"], needed: &[] };

impl LineNames {
    /// Refuses a line with a name that does not exist, and one without a name that it needs.
    pub fn check(&self, line: &str) -> Result<(), String> {
        let found = names(line);
        if let Some(unknown) = found.iter().find(|name| !self.known.contains(name)) {
            return Err(format!("there is no {{{unknown}}}; there are {}", braced(self.known)));
        }
        let missing: Vec<&str> = self.needed.iter().filter(|name| !found.contains(name)).copied().collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("it needs {}", braced(&missing))) }
    }
}

/// The line with values.
pub fn fill(line: &str, values: &[(&str, String)]) -> String {
    let put = |line: String, (name, value): &(&str, String)| line.replace(&format!("{{{name}}}"), value);
    values.iter().fold(line.to_owned(), put)
}

fn braced(names: &[&str]) -> String {
    names.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(", ")
}

/// The words of small letters that stand in braces.
fn names(line: &str) -> Vec<&str> {
    let is_name = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let in_braces = line.split('{').skip(1).filter_map(|part| part.split_once('}'));
    in_braces.map(|(name, _)| name).filter(is_name).collect()
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
        assert_eq!(RECEIVE.check("pkt-gen -f rx"), Ok(()));
        assert!(RECEIVE.check("{pps}").is_err());
    }

    #[test]
    fn values_take_the_place_of_names() {
        let values = [("pps", "7".to_owned()), ("packets", "70".to_owned())];
        assert_eq!(fill("a {pps}{packets} ${PPS} {pps}", &values), "a 770 ${PPS} 7");
    }
}
