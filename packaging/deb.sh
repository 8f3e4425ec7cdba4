#!/usr/bin/env bash
# Builds the Debian package and prints its path: packaging/deb.sh [OPTION OF CARGO DEB...]
# Needs cargo-deb (cargo install cargo-deb), clang and libbpf-dev. PROFILE=dev builds without optimisation, for trials.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${PROFILE:-release}
cargo build --locked --profile "$profile" --bin fullview --features bpf
[ "$profile" = dev ] && folder=debug || folder=$profile
built=${CARGO_TARGET_DIR:-target}/$folder
# The program itself prints what belongs beside it.
mkdir -p "$built/package"
"$built/fullview" man >"$built/package/fullview.1"
for shell in bash zsh fish; do
    "$built/fullview" completions $shell >"$built/package/completion.$shell"
done
cargo deb --no-build --locked --profile "$profile" "$@"
