//! The elements of Markdown that the report uses.

/// Puts verbatim text between fences that are longer than any run of backticks in it.
pub fn fenced(text: &str) -> String {
    let fence = "`".repeat((longest_backticks(text) + 1).max(3));
    format!("{fence}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

/// Returns verbatim text as a part of a line. The ends of its own lines are shown as ↵.
pub fn code(text: &str) -> String {
    let fence = "`".repeat(longest_backticks(text) + 1);
    let line = text.lines().collect::<Vec<_>>().join(" ↵ ");
    // A blank keeps a backtick at an end apart from the fence, and is not shown.
    let blank = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{fence}{blank}{line}{blank}{fence}")
}

fn longest_backticks(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}

/// Escapes plain text so that Markdown does not read it as markup.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        if "\\`*_[]<>|#&".contains(letter) {
            safe.push('\\');
        }
        safe.push(letter);
    }
    safe
}

/// Returns a table whose columns are padded, so that the source is as readable as the page.
pub fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let heading: Vec<String> = heading.iter().map(|name| (*name).to_owned()).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&heading]).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!(" {cell:width$} |"));
        format!("|{}", cells.collect::<String>())
    };
    [&heading, &rule].into_iter().chain(rows).map(line).collect::<Vec<_>>().join("\n")
}

/// Quotes a word of a command for a shell.
pub(super) fn shell_word(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_has_one_line_and_no_end_of_its_own() {
        let cases = [("ls | wc", "`ls | wc`"), ("echo `id`", "`` echo `id` ``"), ("a\nb\n", "`a ↵ b`")];
        cases.iter().for_each(|(text, span)| assert_eq!(code(text), *span));
    }
}
