#!/usr/bin/env bash
# Builds fullview-on-bed with the profile that ships, for this CPU as l3fwd is, and prints the path of the program.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")/peers/fullview
export CARGO_TARGET_DIR
RUSTFLAGS='-C target-cpu=native' cargo build --release --locked --quiet --manifest-path "$here/Cargo.toml" >&2
echo "$CARGO_TARGET_DIR/release/fullview-on-bed"
