//! A strict reader of the OpenMetrics text format (https://prometheus.io/docs/specs/om/open_metrics_spec/), as far as the
//! router's metrics use it. It fails where a scraper might only warn.

use std::collections::{BTreeMap, HashSet};

#[derive(Debug, Default)]
pub struct Page {
    samples: BTreeMap<(String, Vec<(String, String)>), f64>,
}

impl Page {
    /// Returns the sample with exactly these labels.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let key = (name.to_owned(), labels);
        *self.samples.get(&key).unwrap_or_else(|| panic!("no {key:?} among {:#?}", self.samples.keys()))
    }
}

struct Family {
    name: String,
    kind: String,
}

pub fn check(text: &str) -> Page {
    let body = text.strip_suffix("# EOF\n").expect("ends with # EOF");
    let (mut page, mut family, mut known): (Page, Option<Family>, HashSet<String>) = Default::default();
    let mut lines = body.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("a help text");
            assert!(!help.is_empty() && known.insert(name.into()), "{line}: twice, or empty");
            let kind = lines
                .next()
                .and_then(|line| line.strip_prefix(&format!("# TYPE {name} ")))
                .expect("TYPE after HELP");
            assert!(["counter", "gauge"].contains(&kind), "{kind}");
            assert!(
                kind != "counter" || !name.ends_with("_total"),
                "{name}: the family of a counter has no suffix"
            );
            family = Some(Family { name: name.into(), kind: kind.into() });
            continue;
        }
        let (name, labels, value) = sample(line);
        let family = family.as_ref().expect("a sample belongs to a family");
        let suffix = if family.kind == "counter" { "_total" } else { "" };
        assert_eq!(name, format!("{}{suffix}", family.name), "{line}");
        assert!(name.starts_with("fullview_") && is_name(&name), "{line}");
        assert!(value.is_finite() && (family.kind != "counter" || value >= 0.0), "{line}");
        assert!(page.samples.insert((name, labels), value).is_none(), "{line}: twice");
    }
    page
}

fn is_name(name: &str) -> bool {
    name.chars().all(|at| at.is_ascii_lowercase() || at.is_ascii_digit() || at == '_')
}

fn sample(line: &str) -> (String, Vec<(String, String)>, f64) {
    let (key, value) = line.rsplit_once(' ').expect("a value");
    let value = value.parse().unwrap_or_else(|_| panic!("{line}: no number"));
    match key.split_once('{') {
        None => (key.into(), Vec::new(), value),
        Some((name, labels)) => {
            (name.into(), read_labels(labels.strip_suffix('}').expect("a closing brace")), value)
        }
    }
}

fn read_labels(mut text: &str) -> Vec<(String, String)> {
    let mut labels: Vec<(String, String)> = Vec::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").expect("a label");
        let (value, rest) = unescape(rest);
        assert!(is_name(name) && labels.iter().all(|(known, _)| known != name), "{name}");
        labels.push((name.into(), value));
        text = rest.strip_prefix(',').unwrap_or(rest);
        assert!(rest.is_empty() || rest.starts_with(',') && !text.is_empty(), "{rest}");
    }
    labels
}

/// Returns the text up to the closing quote, unescaped, and what follows the quote.
fn unescape(text: &str) -> (String, &str) {
    let (mut value, mut at) = (String::new(), text.char_indices());
    while let Some((place, next)) = at.next() {
        match next {
            '"' => return (value, &text[place + 1..]),
            '\\' => match at.next().expect("something follows a backslash").1 {
                'n' => value.push('\n'),
                escaped @ ('\\' | '"') => value.push(escaped),
                other => panic!("\\{other} is no escape"),
            },
            other => value.push(other),
        }
    }
    panic!("no closing quote in {text}")
}
