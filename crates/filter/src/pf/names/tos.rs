//! Values of the type-of-service byte by name (RFC 1349, RFC 2474).

const VALUES: &[(&str, u8)] = &[
    ("lowdelay", 0x10),
    ("throughput", 0x08),
    ("reliability", 0x04),
    ("inetcontrol", 0xc0),
    ("netcontrol", 0xe0),
    ("critical", 0xa0),
    ("ef", 0xb8),
    ("va", 0xb0),
    ("af11", 0x28),
    ("af12", 0x30),
    ("af13", 0x38),
    ("af21", 0x48),
    ("af22", 0x50),
    ("af23", 0x58),
    ("af31", 0x68),
    ("af32", 0x70),
    ("af33", 0x78),
    ("af41", 0x88),
    ("af42", 0x90),
    ("af43", 0x98),
    ("cs0", 0x00),
    ("cs1", 0x20),
    ("cs2", 0x40),
    ("cs3", 0x60),
    ("cs4", 0x80),
    ("cs5", 0xa0),
    ("cs6", 0xc0),
    ("cs7", 0xe0),
];

/// The value of a name, or of a number in hexadecimal digits after `0x`.
pub fn value(name: &str) -> Option<u8> {
    let named = VALUES.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    named.or_else(|| u8::from_str_radix(name.strip_prefix("0x")?, 16).ok())
}
