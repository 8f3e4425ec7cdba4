#!/usr/bin/env bash
# Runs DPDK's l3fwd in the test bed of l3fwd/: its ports connect to a generator and a receiver on the same core.
# Usage: peers/dpdk/l3fwd.sh --only l3fwd_MODE_inet:BATCH,l3fwd_MODE_inet6:BATCH [--serve] FOLDER
# MODE is lpm, fib, lpm_parsing or fib_parsing, BATCH 32 or 256 (see peers/README.md).
set -euo pipefail

readonly here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly core=${CORE:-0}
. "$here/huge.sh"
. "$here/rules.sh"

usage() { give_up 1 "$1; usage: l3fwd.sh --only l3fwd_fib_inet:32,l3fwd_fib_inet6:32 [--serve] FOLDER"; }

# All named contestants must be the same program with the same options.
choose() { # NAME,NAME…
	local name
	for name in ${1//,/ }; do
		[[ $name =~ ^(l3fwd_(lpm|fib)(_parsing)?)_inet6?:(32|256)$ ]] || usage "$name: no such contestant"
		[[ -z ${peer:-} || $peer:$batch == "${BASH_REMATCH[1]}:${BASH_REMATCH[4]}" ]] ||
			usage "$1: one program cannot be all of these"
		peer=${BASH_REMATCH[1]} mode=${BASH_REMATCH[2]} parsing=${BASH_REMATCH[3]} batch=${BASH_REMATCH[4]}
	done
}

# The ports: one that receives, and one for each next hop of the table.
port_arguments() {
	local number
	for ((number = 0; number <= ports; number++)); do
		printf '%s\n' --vdev "net_bed$number"
	done
}

parse "$@"
program=$("$here/l3fwd/build.sh" "$batch") || give_up 4 "l3fwd could not be built, see above"
prepare

# The memory of their tables for a full view, and as much again for packets.
case $mode in lpm) memory_mb=${MEMORY_MB:-1024} ;; fib) memory_mb=${MEMORY_MB:-1536} ;; esac
reserve
choose_memory
mapfile -t port_options < <(port_arguments)
export BED_FOLDER=$folder BED_PEER=$peer BED_BATCH=$batch BED_PAGES=$pages
[[ -z $parsing ]] || export BED_TYPES=none
options=(-p "$(printf '0x%x' $(((1 << (ports + 1)) - 1)))" --config "(0,0,$core)" --lookup "$mode"
	--rule_ipv4 "$scratch/rules" --rule_ipv6 "$scratch/rules6" ${parsing:+--parse-ptype})
serve_or_check "$program" "${eal[@]}" -l "$core" -m "$memory_mb" "${port_options[@]}" -- "${options[@]}"
