//! Names of interfaces, as the kernel would take them.

use anyhow::ensure;

/// The kernel's `IFNAMSIZ`, without the zero at the end.
const LONGEST: usize = 15;

/// Refuses what cannot be an interface, or stands for two of them.
pub fn check(interfaces: &[String]) -> anyhow::Result<()> {
    const MOST: usize = 1000;
    ensure!(interfaces.len() <= MOST, "router.interfaces: {} are too many; at most {MOST}", interfaces.len());
    for (place, name) in interfaces.iter().enumerate() {
        ensure!(
            is_valid(name),
            "router.interfaces: {name:?} cannot be an interface's name: 1 to {LONGEST} bytes, no blank, slash or colon, neither . nor .."
        );
        ensure!(!interfaces[..place].contains(name), "router.interfaces: {name} is named twice");
    }
    Ok(())
}

/// What `dev_valid_name` of the kernel says.
fn is_valid(name: &str) -> bool {
    let fits = (1..=LONGEST).contains(&name.len()) && ![".", ".."].contains(&name);
    // The kernel's `isspace` knows the vertical tab too.
    let is_bad = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, 0 | 0x0b | b'/' | b':' | 0xa0);
    fits && !name.bytes().any(is_bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_the_kernel_takes() {
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
