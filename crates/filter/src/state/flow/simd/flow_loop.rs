//! A loop over packets, and the hash that it gets.

/// A loop over packets.
pub trait FlowLoop {
    /// What it returns.
    type Output;

    /// Runs the loop. To be inlined always, as what is not inlined is compiled for any processor.
    fn run(self, hasher: impl WireHasher) -> Self::Output;
}

/// Hashes what identifies a flow, with secret keys. Hashers of two instruction sets differ.
pub trait WireHasher: Copy + sealed::Sealed {
    /// The hash of two words.
    fn of_two(self, keys: &[u64; 4], words: [u64; 2]) -> u64;

    /// The hash of four words and another one.
    fn of_five(self, keys: &[u64; 4], words: [u64; 4], last: u64) -> u64;
}

pub(super) mod sealed {
    pub trait Sealed {}
}
