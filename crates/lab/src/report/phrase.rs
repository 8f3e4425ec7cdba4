//! How a metric is said in a sentence: "forwards … packets".

/// The verb and the noun of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Phrase<'a> {
    verb: &'a str,
    noun: &'a str,
}

impl<'a> Phrase<'a> {
    /// The phrase of a metric. One that is not known is its own noun.
    pub(super) fn of(metric: &'a str) -> Self {
        let first = metric.split('-').next().unwrap_or_default();
        let (verb, noun) = match first {
            _ if metric.ends_with("forwarded") => ("forwards", "packets"),
            unit if metric.ends_with("carried") => ("carries", unit),
            "lookups" => ("looks up", "keys"),
            "updates" | "changes" => ("applies", "changes"),
            _ => ("reaches", metric),
        };
        Phrase { verb, noun }
    }

    pub(super) fn verb(&self) -> &'a str {
        self.verb
    }

    /// The noun with the family before it, if that is one word: "IPv4 packets".
    pub(super) fn noun(&self, family: &str) -> String {
        if is_word(family) { format!("{family} {}", self.noun) } else { self.noun.into() }
    }

    /// What a sentence begins with if the family is not one word: "IPv4, Zipf: ".
    pub(super) fn prefix(&self, family: &str) -> String {
        if is_word(family) { String::new() } else { format!("{family}: ") }
    }
}

fn is_word(family: &str) -> bool {
    !family.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::Phrase;

    #[test]
    fn a_metric_has_a_verb_and_a_noun() {
        let said = |metric: &str| {
            let phrase = Phrase::of(metric);
            format!("{} {}", phrase.verb(), phrase.noun("IPv4"))
        };
        assert_eq!(said("packets-per-second forwarded"), "forwards IPv4 packets");
        assert_eq!(said("requests-per-second carried"), "carries IPv4 requests");
        assert_eq!(said("lookups-per-second"), "looks up IPv4 keys");
        assert_eq!(said("updates-per-second"), "applies IPv4 changes");
        assert_eq!(said("cells-per-second painted"), "reaches IPv4 cells-per-second painted");
    }

    #[test]
    fn a_family_of_several_words_begins_the_sentence() {
        let phrase = Phrase::of("lookups-per-second");
        assert_eq!(
            (phrase.prefix("IPv4, Zipf"), phrase.noun("IPv4, Zipf")),
            ("IPv4, Zipf: ".into(), "keys".into())
        );
    }
}
