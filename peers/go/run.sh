#!/usr/bin/env bash
# Builds go-lookup and runs it on one core; see peers/README.md.
# Usage: peers/go/run.sh [go-lookup options] FOLDER
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Version 4 of the instruction set has AVX-512; other processors get the libraries' code for version 3.
level=v3
! grep -qw avx512bw /proc/cpuinfo || level=v4
(cd "$here" && GOAMD64=$level go build -trimpath -o ../build/go-lookup .) >&2 || {
	echo "run.sh: the build failed, see above; it needs Go 1.24 or newer" >&2
	exit 4
}
export GOMAXPROCS=1
exec taskset -c "${CORE:-0}" "$here/../build/go-lookup" "$@"
