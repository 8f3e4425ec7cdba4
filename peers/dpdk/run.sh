#!/usr/bin/env bash
# Builds dpdk-lookup, reserves the huge pages it wants, runs it, and puts the huge pages back as they were.
# Usage: peers/dpdk/run.sh [dpdk-lookup options] FOLDER        (see peers/README.md)
set -euo pipefail

readonly here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly memory_mb=${MEMORY_MB:-2048}
readonly core=${CORE:-0}
readonly pool=/sys/kernel/mm/hugepages/hugepages-2048kB
child=
pages_before=

say() { echo "run.sh: $*" >&2; }

# give_up EXIT-CODE MESSAGE
give_up() {
	say "$2"
	exit "$1"
}

# Ends the program first: pages in use cannot be given back.
clean_up() {
	local status=$?
	trap - EXIT
	trap '' INT TERM HUP
	if [[ -n $child ]] && kill -TERM "$child" 2>/dev/null; then
		wait "$child" 2>/dev/null || true
	fi
	if [[ -n $pages_before ]]; then
		put_back
	fi
	exit "$status"
}

put_back() {
	echo "$pages_before" >"$pool/nr_hugepages" || say "could not restore nr_hugepages=$pages_before; do it by hand"
	pages_before=
}

# Asked for more than there is, the kernel hands the pool all it can find, and every other program on the machine
# starves. So this comes before the pool is touched, and leaves others a gibibyte.
refuse_too_much() {
	local available_mb
	[[ $memory_mb =~ ^[1-9][0-9]{0,8}$ ]] || give_up 1 "MEMORY_MB=$memory_mb: want a whole number of MiB"
	available_mb=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
	((memory_mb + 1024 <= available_mb)) ||
		give_up 4 "$available_mb MiB of memory are available: too few for MEMORY_MB=$memory_mb and 1024 to spare"
}

# Tops the pool up so that memory_mb is free. Where that fails the program runs on 4 KiB pages and says so.
reserve_huge_pages() {
	local wanted=$(((memory_mb + 1) / 2)) free reserved
	if [[ ! -d $pool ]]; then
		say "this kernel has no 2 MiB huge pages"
		return
	fi
	free=$(<"$pool/free_hugepages")
	((free < wanted)) || return 0
	if [[ ! -w $pool/nr_hugepages ]]; then
		say "not allowed to reserve huge pages: run as root for comparable figures"
		return
	fi
	reserved=$(<"$pool/nr_hugepages")
	pages_before=$reserved
	echo $((reserved + wanted - free)) >"$pool/nr_hugepages" || true
	free=$(<"$pool/free_hugepages")
	((free >= wanted)) && return
	say "only $free of $wanted huge pages are free: memory is short or fragmented"
	put_back
}

for tool in make pkg-config "${CC:-cc}"; do
	command -v "$tool" >/dev/null || give_up 4 "$tool is missing: apt install build-essential pkg-config libdpdk-dev"
done
make --silent -C "$here" >&2 || give_up 4 "the build failed, see above"

refuse_too_much
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
reserve_huge_pages

# In the background, so that a signal to this script is acted on at once; `<&0` hands it our standard input even so.
"$here/../build/dpdk-lookup" --core "$core" --memory "$memory_mb" "$@" <&0 &
child=$!
status=0
wait "$child" || status=$?
child=
exit "$status"
