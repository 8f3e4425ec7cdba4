//! Entries of tables in files, as pf reads them.

use std::path::Path;

use fullview_filter::address_table::TableEntry;
use fullview_router::error::BadInput;

use super::read::{name, text};

/// The entries of a file, between blanks; `#` and `;` begin comments, and `!` may stand alone before an address.
pub fn from_file(path: &Path) -> Result<Vec<TableEntry>, BadInput> {
    let path = name(path)?;
    let mut entries = Vec::new();
    for (number, line) in (1..).zip(text(path)?.lines()) {
        let wrong = |error| BadInput(format!("{path}:{number}: {error}"));
        entries.extend(of_line(line).map_err(wrong)?);
    }
    Ok(entries)
}

fn of_line(line: &str) -> Result<Vec<TableEntry>, String> {
    let content = line.split(['#', ';']).next().unwrap_or_default();
    let (mut entries, mut except) = (Vec::new(), "");
    for word in content.split_whitespace() {
        if word == "!" {
            except = "!";
            continue;
        }
        let entry = format!("{except}{word}").parse::<TableEntry>();
        entries.push(entry.map_err(|error| error.to_string())?);
        except = "";
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_between_blanks_are_entries() {
        let read =
            |line| of_line(line).map(|entries| entries.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(
            read("192.0.2.1  !2001:db8::/32\t! 192.0.2.7 # 1.2.3.4").unwrap(),
            ["192.0.2.1", "!2001:db8::/32", "!192.0.2.7"]
        );
        assert_eq!(read("; nothing").unwrap(), [""; 0]);
        assert!(read("192.0.2.1, 192.0.2.2").unwrap_err().contains("'192.0.2.1,'"));
    }
}
