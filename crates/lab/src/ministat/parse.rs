//! Reads the values of one column of a text.

/// A line whose column is not a number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Invalid data \"{token}\" on line {line}")]
pub struct ParseError {
    /// Line in the text, counted from 1.
    pub line: usize,
    /// The text that is not a number.
    pub token: String,
}

/// Returns the values in a column (counted from 1) of a text whose columns are separated by one or more of the delimiter
/// bytes.
///
/// Lines without that column are skipped, and a column that starts with `#` ends its line. White space at the end of a
/// line is ignored. The decimal separator is a point or a comma.
///
/// # Errors
/// Names the first line whose column is not a finite decimal number. (strtod(3) also reads hexadecimal and infinite
/// numbers; in a column of measurements they mean damage, so they are errors here.)
pub fn parse(text: &[u8], column: usize, delimiters: &[u8]) -> Result<Vec<f64>, ParseError> {
    let mut values = Vec::new();
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let Some(token) = field(line, column, delimiters) else { continue };
        let invalid = || ParseError { line: index + 1, token: String::from_utf8_lossy(token).into_owned() };
        values.push(number(token).ok_or_else(invalid)?);
    }
    Ok(values)
}

fn field<'a>(line: &'a [u8], column: usize, delimiters: &[u8]) -> Option<&'a [u8]> {
    line.trim_ascii_end()
        .split(|byte| delimiters.contains(byte))
        .filter(|token| !token.is_empty())
        .take_while(|token| !token.starts_with(b"#"))
        .nth(column.checked_sub(1)?)
}

/// Reads a finite decimal number like strtod(3): white space may precede it, nothing may follow it.
pub(super) fn number(token: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(token.trim_ascii_start()).ok()?;
    text.replacen(',', ".", 1).parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::{ParseError, parse};

    const BLANKS: &[u8] = b" \t";

    #[test]
    fn takes_the_column_and_skips_comments_and_short_lines() {
        let text = b"1 10\n# 2 20\n\n3\n4\t \t40 x\n5 #50\n6 60";
        assert_eq!(parse(text, 2, BLANKS), Ok(vec![10.0, 40.0, 60.0]));
    }

    #[test]
    fn takes_any_delimiter_and_either_decimal_sign() {
        assert_eq!(parse(b"a;b,1.5\r\n;;c,2.5 \n", 3, b";,"), Ok(vec![1.5]));
        assert_eq!(parse(b"1,5\n-2.5e1\n+.5\n7.\n", 1, BLANKS), Ok(vec![1.5, -25.0, 0.5, 7.0]));
    }

    #[test]
    fn an_error_names_the_line_that_is_not_a_number() {
        for (text, line, token) in
            [("1\n2\nthree\n", 3, "three"), ("1x", 1, "1x"), ("1\n\nnan", 3, "nan"), ("1e999", 1, "1e999")]
        {
            assert_eq!(parse(text.as_bytes(), 1, BLANKS), Err(ParseError { line, token: token.to_owned() }));
        }
    }

    #[test]
    fn column_zero_has_no_values() {
        assert_eq!(parse(b"1 2 3\n", 0, BLANKS), Ok(vec![]));
    }
}
