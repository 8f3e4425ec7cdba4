#!/usr/bin/env bash
# Builds dpdk-lookup, reserves the huge pages it needs, runs it, and returns the huge pages.
# Usage: peers/dpdk/run.sh [dpdk-lookup options] FOLDER        (see peers/README.md)
set -euo pipefail

readonly here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly memory_mb=${MEMORY_MB:-2048}
readonly core=${CORE:-0}
. "$here/huge.sh"

for tool in make pkg-config "${CC:-cc}"; do
	command -v "$tool" >/dev/null || give_up 4 "$tool is missing: apt install build-essential pkg-config libdpdk-dev"
done
make --silent -C "$here" >&2 || give_up 4 "the build failed, see above"

reserve
run_child "$here/../build/dpdk-lookup" --core "$core" --memory "$memory_mb" "$@"
