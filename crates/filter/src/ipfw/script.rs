//! Scripts of commands: what `ipfw FILE` reads, or a shell script that calls ipfw, as rc.firewall(5) is one.
//!
//! Of the shell's language a script may use comments, assignments, variables, quotes and a backslash at the end of a line.

use std::collections::BTreeMap;

use super::error::IpfwError;
use super::words::Word;

/// A variable may hold a variable twice, and so on.
const LONGEST_WORD: usize = 1 << 16;
const MOST_EXPANDED: usize = 1 << 26;

/// The commands of a script, without the name of the program and its options.
pub(super) fn commands(file: &str, text: &str) -> Result<Vec<Vec<Word>>, IpfwError> {
    let mut reader = ScriptReader { file, variables: BTreeMap::new(), words: Vec::new(), length: 0 };
    let mut commands = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let continues = line.ends_with('\\');
        reader.line(number, line.strip_suffix('\\').unwrap_or(line))?;
        if !continues {
            commands.extend(reader.command()?);
        }
    }
    commands.extend(reader.command()?);
    Ok(commands)
}

struct ScriptReader<'a> {
    file: &'a str,
    variables: BTreeMap<String, String>,
    words: Vec<Word>,
    /// Characters of all words so far.
    length: usize,
}

impl ScriptReader<'_> {
    /// Adds the words of a line. A comment of the shell ends it.
    fn line(&mut self, number: usize, line: &str) -> Result<(), IpfwError> {
        let mut rest = line;
        loop {
            rest = rest.trim_start();
            if rest.is_empty() || rest.starts_with('#') {
                return Ok(());
            }
            let column = line.len() - rest.len() + 1;
            let (word, quoted, after) = self.word(rest, number, column)?;
            self.length += word.len();
            if self.length > MOST_EXPANDED {
                let message = format!(
                    "with its variables the script is longer than {MOST_EXPANDED} characters; shorten it"
                );
                return Err(self.error(number, column, message));
            }
            let assigned = self.words.is_empty().then(|| assignment(&word)).flatten();
            if let Some((name, value)) = assigned {
                self.variables.insert(name.to_owned(), value.to_owned());
            } else {
                self.add(&word, quoted, number, column)?;
            }
            rest = after;
        }
    }

    /// Adds what a word became: a variable without quotes may hold several words.
    fn add(&mut self, text: &str, quoted: bool, line: usize, column: usize) -> Result<(), IpfwError> {
        let one = |text: &str| Word { text: text.to_owned(), line, column };
        let in_comment = self.words.iter().any(|word| word.text == "//");
        if quoted && !in_comment && (text.is_empty() || text.contains(char::is_whitespace)) {
            let message = "no name, number or address is empty or has blanks; write it without them";
            return Err(self.error(line, column, message.to_owned()));
        }
        if quoted {
            self.words.push(one(text));
        } else {
            self.words.extend(text.split_whitespace().map(one));
        }
        Ok(())
    }

    /// The word that the text starts with, whether it was quoted, and the text after it.
    fn word<'t>(
        &self,
        text: &'t str,
        line: usize,
        column: usize,
    ) -> Result<(String, bool, &'t str), IpfwError> {
        let (mut word, mut quote, mut was_quoted) = (String::new(), None, false);
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            match (next, quote) {
                (c, Some(open)) if c == open => quote = None,
                ('"' | '\'', None) => (quote, was_quoted) = (Some(next), !word.contains('=')),
                ('$', None | Some('"')) => {
                    let (value, after) = self.variable(rest, line, column + text.len() - rest.len())?;
                    word.push_str(value);
                    if word.len() > LONGEST_WORD {
                        return Err(self.too_long(line, column));
                    }
                    rest = after;
                    continue;
                }
                ('\\', None) => {
                    rest = &rest[1..];
                    word.extend(rest.chars().next());
                    rest = skip_one(rest);
                    continue;
                }
                (c, None) if c.is_whitespace() => break,
                (c, _) => word.push(c),
            }
            rest = skip_one(rest);
        }
        match quote {
            None => Ok((word, was_quoted, rest)),
            Some(open) => Err(self.error(line, column, format!("no {open} ends this word; add it"))),
        }
    }

    /// The value of the variable that the text starts with, and the text after it.
    fn variable<'s, 't>(
        &'s self,
        text: &'t str,
        line: usize,
        column: usize,
    ) -> Result<(&'s str, &'t str), IpfwError> {
        let after = &text[1..];
        let (name, rest) = match after.strip_prefix('{') {
            Some(inner) => inner.split_once('}').unwrap_or(("", inner)),
            None => after.split_at(after.find(|c: char| !is_name(c)).unwrap_or(after.len())),
        };
        let value = self.variables.get(name);
        let value = value.ok_or_else(|| {
            self.error(
                line,
                column,
                format!("no variable `{name}`; assign it before, as in {name}=\"value\""),
            )
        })?;
        Ok((value, rest))
    }

    /// The command that the words make, if they make one.
    fn command(&mut self) -> Result<Option<Vec<Word>>, IpfwError> {
        let words = std::mem::take(&mut self.words);
        let Some(first) = words.first() else { return Ok(None) };
        let is_program = first.text == "ipfw" || first.text.ends_with("/ipfw");
        let mut words = words.into_iter().skip(usize::from(is_program)).peekable();
        while let Some(option) = words.next_if(|word| word.text.starts_with('-')) {
            if !option.text[1..].chars().all(|c| matches!(c, 'q' | 'f')) {
                let message = format!("the option {} has no meaning here; -q and -f have", option.text);
                return Err(self.error(option.line, option.column, message));
            }
        }
        let command: Vec<_> = words.collect();
        Ok((!command.is_empty()).then_some(command))
    }

    fn too_long(&self, line: usize, column: usize) -> IpfwError {
        let message = format!(
            "with its variables this word is longer than {LONGEST_WORD} characters; write a shorter one"
        );
        self.error(line, column, message)
    }

    fn error(&self, line: usize, column: usize, message: String) -> IpfwError {
        IpfwError::new(self.file, line, column, &message)
    }
}

fn skip_one(text: &str) -> &str {
    let mut chars = text.chars();
    chars.next();
    chars.as_str()
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (starts_well && name.chars().all(is_name)).then_some((name, value))
}
