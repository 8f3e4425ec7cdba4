//! Checks names of interfaces, by the kernel's rules.

use super::error::{ConfigError, ensure};

/// The kernel's `IFNAMSIZ`, without the terminating zero.
const MAX_BYTES: usize = 15;

/// Refuses a name that no interface can have, and one that is there twice.
pub fn check(interfaces: &[String]) -> Result<(), ConfigError> {
    const MAX_INTERFACES: usize = 1000;
    ensure!(
        interfaces.len() <= MAX_INTERFACES,
        "router.interfaces: {} are too many; at most {MAX_INTERFACES}",
        interfaces.len()
    );
    for (place, name) in interfaces.iter().enumerate() {
        ensure!(
            is_valid(name),
            "router.interfaces: {name:?} cannot be an interface's name: 1 to {MAX_BYTES} bytes, no blank, slash or colon, neither . nor .."
        );
        ensure!(!interfaces[..place].contains(name), "router.interfaces: {name} is named twice");
    }
    Ok(())
}

/// Checks what the kernel's `dev_valid_name` checks.
fn is_valid(name: &str) -> bool {
    let fits = (1..=MAX_BYTES).contains(&name.len()) && ![".", ".."].contains(&name);
    // The kernel's `isspace` is true for the vertical tab too.
    let is_bad = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, 0 | 0x0b | b'/' | b':' | 0xa0);
    fits && !name.bytes().any(is_bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_if_the_kernel_accepts_them() {
        for name in ["eth0", "a", "fifteen-bytes-x", "eth0.100", "äöü", "%d"] {
            assert!(is_valid(name), "{name}");
        }
        for name in ["", ".", "..", "../../x", "a b", "a:1", "sixteen-bytes-xy", "a\tb", "a\u{b}b", "a\0"] {
            assert!(!is_valid(name), "{name:?}");
        }
        let named = |names: &[&str]| check(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert!(named(&["eth0", "eth1"]).is_ok());
        assert!(named(&["eth0", "eth1", "eth0"]).unwrap_err().to_string().contains("eth0 is named twice"));
        assert!(named(&["../../x"]).unwrap_err().to_string().contains("\"../../x\" cannot be"));
    }
}
