#!/usr/bin/env bash
# Runs a router between memif interfaces on one core, and its generator and receiver on another (memif/).
# Usage: peers/dpdk/memif.sh --only memif_ROUTER_inet:BATCH,memif_ROUTER_inet6:BATCH [--serve] FOLDER
# ROUTER is l3fwd_lpm, l3fwd_fib or fullview, BATCH is 32 or 256 (see peers/README.md). CORE and
# ROUTER_CORE are the cores.
set -euo pipefail

readonly here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly core=${CORE:-0} router_core=${ROUTER_CORE:-1}
. "$here/huge.sh"
. "$here/rules.sh"

usage() { give_up 1 "$1; usage: memif.sh --only memif_l3fwd_fib_inet:32,memif_l3fwd_fib_inet6:32 [--serve] FOLDER"; }

choose() { # NAME,NAME…
	local name
	for name in ${1//,/ }; do
		[[ $name =~ ^memif_(l3fwd_lpm|l3fwd_fib|fullview)_inet6?:(32|256)$ ]] || usage "$name: no such contestant"
		[[ -z ${peer:-} || $peer:$batch == "${name%_inet*}:${name##*:}" ]] || usage "$1: one program cannot be all of these"
		peer=${name%_inet*} batch=${name##*:}
		[[ $peer == memif_fullview ]] || mode=${peer##*_}
	done
}

# One for each port, with the addresses that the ports have in the test bed of l3fwd/.
interfaces() {
	local number shared="role=client,socket=$scratch/memif.sock,socket-abstract=no"
	# The driver logs for each port that it cannot share it with other processes; there are none.
	echo --log-level=pmd.net.memif:critical
	for ((number = 0; number <= ports; number++)); do
		printf '%s\n' --vdev "net_memif$number,$shared,id=$number,mac=$(printf '02:00:00:00:01:%02x' "$number")"
	done
}

# Waits until the generator listens.
await_generator() {
	local tries
	for ((tries = 0; tries < 600; tries++)); do
		[[ ! -e $scratch/memif.sock ]] || return 0
		sleep 0.1
	done
	return 1
}

# Runs the router in a process of its own, which ends with the generator.
route() {
	local vdevs mask
	await_generator || return 0
	if [[ $peer == memif_fullview ]]; then
		# As in ../fullview/run.sh.
		export GLIBC_TUNABLES=glibc.malloc.hugetlb=1
		exec "$ours" memif "$folder/table.txt" dpdk_lpm4 "$ports" "$batch" "$scratch/memif.sock" "$router_core"
	fi
	mapfile -t vdevs < <(interfaces)
	mask=$(printf '0x%x' $(((1 << (ports + 1)) - 1)))
	exec "$built/l3fwd" "${eal[@]}" -l "$router_core" -m "$memory_mb" "${vdevs[@]}" -- -p "$mask" \
		--config "(0,0,$router_core)" --lookup "$mode" --parse-ptype \
		--rule_ipv4 "$scratch/rules" --rule_ipv6 "$scratch/rules6" >/dev/null
}

parse "$@"
program=$("$here/l3fwd/build.sh" "memif-$batch") || give_up 4 "l3fwd could not be built, see above"
built=$(dirname "$program")
prepare
if [[ $peer == memif_fullview ]]; then
	ours=$("$here/../fullview/build.sh") || give_up 4 "the build failed, see above"
	pages=$(transparent_pages)
	export BED_LOWERS_HOP_LIMIT=1
	clean_up_at_end
else
	memory_mb=${MEMORY_MB:-1536}
	reserve
	choose_memory
fi
router=
tidy() {
	[[ -z $router ]] || end_process "$router"
	rm -rf "$scratch"
}
route 3>&- </dev/null >&2 &
router=$!
export BED_FOLDER=$folder BED_PEER=$peer BED_BATCH=$batch BED_PAGES=$pages BED_ROUTER=$router
serve_or_check taskset -c "$core" "$built/generator" "$scratch/memif.sock" $((ports + 1))
