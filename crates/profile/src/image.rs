//! Where this program is in memory.

/// The mappings of the program's file (proc_pid_maps(5)).
pub struct Image(Vec<Mapping>);

struct Mapping {
    start: u64,
    end: u64,
    /// Offset in the file of the first byte.
    offset: u64,
}

impl Image {
    pub fn of(maps: &str, file: &str) -> Image {
        let own = maps.lines().filter(|line| line.strip_suffix(file).is_some_and(|rest| rest.ends_with(' ')));
        Image(own.filter_map(mapping).collect())
    }

    /// The address for which the file was linked, of what perf prints: an address in memory, or an offset in the file, as it
    /// does for frames that it unwound.
    pub fn linked(&self, printed: u64) -> Option<u64> {
        let in_memory = self.0.iter().any(|one| (one.start..one.end).contains(&printed));
        let address = if in_memory { printed } else { self.loaded(printed)? };
        let base = self.0.iter().find(|one| one.offset == 0)?.start;
        address.checked_sub(base)
    }

    fn loaded(&self, offset: u64) -> Option<u64> {
        let holds = |one: &&Mapping| (one.offset..one.offset + (one.end - one.start)).contains(&offset);
        // The last page of one mapping and the first of the next may hold the same part of the file; code is in the later.
        self.0.iter().rev().find(holds).map(|one| one.start + (offset - one.offset))
    }
}

/// `START-END PERMISSIONS OFFSET DEVICE INODE PATH`.
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping { start: number(start)?, end: number(end)?, offset: number(words.nth(1)?)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "1000-2000 r--p 00000000 08:01 5 /bin/bb\n\
                        50000-52000 r--p 00000000 08:01 7 /bin/b\n\
                        53000-57000 r-xp 00002000 08:01 7 /bin/b\n";

    #[test]
    fn addresses_and_offsets_lead_to_the_linked_address() {
        let image = Image::of(MAPS, "/bin/b");
        assert_eq!(image.linked(0x53010), Some(0x3010));
        assert_eq!(image.linked(0x2010), Some(0x3010));
        assert_eq!(image.linked(0x10), Some(0x10));
        assert_eq!(image.linked(0x9000), None);
        assert_eq!(Image::of(MAPS, "/bin/c").linked(0x10), None);
    }
}
