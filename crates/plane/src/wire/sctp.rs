//! The checksum of SCTP: CRC32c over the whole packet (RFC 9260, appendix A).

/// The polynomial 0x1edc6f41, reflected.
const POLYNOMIAL: u32 = 0x82f6_3b78;

static TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut value, mut bit) = (byte as u32, 0);
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ POLYNOMIAL } else { value >> 1 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
};

fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)];
    !bytes.iter().fold(u32::MAX, step)
}

/// Where the checksum begins in the common header. No other protocol has its checksum there.
pub const CHECKSUM: usize = 8;

/// Computes the checksum of a packet from its common header on; `false` if it is shorter than that header.
pub fn fill_checksum(packet: &mut [u8]) -> bool {
    const FIELD: std::ops::Range<usize> = CHECKSUM..CHECKSUM + 4;
    if packet.len() < FIELD.end {
        return false;
    }
    packet[FIELD].fill(0);
    let crc = crc(packet);
    packet[FIELD].copy_from_slice(&crc.to_le_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720, appendix B.4.
    #[test]
    fn the_examples_of_iscsi_have_their_checksums() {
        assert_eq!(crc(&[0; 32]).to_le_bytes(), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(crc(&[0xff; 32]).to_le_bytes(), [0x43, 0xab, 0xa8, 0x62]);
    }

    #[test]
    fn a_filled_checksum_lies_in_the_common_header() {
        let mut packet = [[0; 12], [7; 12]].concat();
        assert!(fill_checksum(&mut packet) && !fill_checksum(&mut packet[..11]));
        let stored: [u8; 4] = packet[8..12].try_into().unwrap();
        packet[8..12].fill(0);
        assert_eq!(stored, crc(&packet).to_le_bytes());
    }
}
