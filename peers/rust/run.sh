#!/usr/bin/env bash
# Builds rust-lookup and runs it on one core; see peers/README.md.
# Usage: peers/rust/run.sh [rust-lookup options] FOLDER
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export CARGO_TARGET_DIR=$here/../build/rust
RUSTFLAGS='-C target-cpu=native' cargo build --release --locked --quiet --manifest-path "$here/Cargo.toml" >&2 || {
	echo "run.sh: the build failed, see above" >&2
	exit 4
}
# The structures have many megabytes: they use transparent huge pages, as fullview's own do.
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1
exec taskset -c "${CORE:-0}" "$CARGO_TARGET_DIR/release/rust-lookup" "$@"
