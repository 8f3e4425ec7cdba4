//! The work that is profiled, with a frame of its own on the stack.

/// What the name of [`in_window`] contains, of every type of work.
pub(crate) const MARK: &str = "fullview_profile::window::in_window";

/// Does the work. Frames outside of this one are left out of stacks, so that those of two variants begin alike, and a
/// stack without it was not unwound to its end.
#[inline(never)]
pub(crate) fn in_window<T>(work: impl FnOnce() -> T) -> T {
    let done = work();
    // Keeps the call above from being the last thing done here, which would give its place on the stack to `work`.
    std::hint::black_box(());
    done
}
