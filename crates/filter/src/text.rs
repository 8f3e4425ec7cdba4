//! Text in files.

use std::io;

/// The text of a file; the error says where it is none.
pub fn decode(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let (line, column) = place(&String::from_utf8_lossy(before));
        let problem = format!("it is not text in UTF-8 at line {line}, column {column}");
        io::Error::new(io::ErrorKind::InvalidData, problem)
    })
}

/// Line and column behind a text, both from 1.
fn place(before: &str) -> (usize, usize) {
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_that_is_no_text_has_its_place() {
        assert_eq!(decode("ä\n".into()).unwrap(), "ä\n");
        for (bytes, place) in [
            (&b"\xff"[..], "line 1, column 1"),
            (b"a\nb\xc3\xa4\xe4\n", "line 2, column 3"),
            (b"a\n\xc3", "line 2, column 1"),
        ] {
            let error = decode(bytes.to_vec()).unwrap_err().to_string();
            assert!(error.ends_with(place), "{error}");
        }
    }
}
