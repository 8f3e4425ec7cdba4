#!/usr/bin/env bash
# Builds the Debian package and prints its path: packaging/deb.sh [OPTION OF CARGO DEB...]
# Needs cargo-deb (cargo install cargo-deb), clang and libbpf-dev.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --locked --release --bin fullview --features bpf
built=${CARGO_TARGET_DIR:-target}/release
# The program itself writes its manual pages and completions.
rm -rf "$built/package"
mkdir -p "$built/package"
"$built/fullview" man --out "$built/package/man"
for shell in bash zsh fish; do
    "$built/fullview" completions $shell >"$built/package/completion.$shell"
done
cargo deb --no-build --locked "$@"
