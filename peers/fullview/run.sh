#!/usr/bin/env bash
# Builds fullview-on-bed and runs it on the bed that l3fwd runs on, on one core; see peers/README.md.
# Usage: peers/fullview/run.sh --only fullview_ALGORITHM_inet:BATCH,fullview_ALGORITHM_inet6:BATCH [--serve] FOLDER
# ALGORITHM is the one for IPv4, dpdk_lpm4 or dir18.
set -euo pipefail

readonly here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../dpdk/huge.sh"
. "$here/../dpdk/rules.sh"

usage() { give_up 1 "$1; usage: run.sh --only fullview_dir18_inet:32,fullview_dir18_inet6:32 [--serve] FOLDER"; }

choose() { # NAME,NAME…
	local name
	for name in ${1//,/ }; do
		[[ $name =~ ^(fullview_(dpdk_lpm4|dir18))_inet6?:([1-9][0-9]{0,2})$ ]] && ((BASH_REMATCH[3] <= 256)) ||
			usage "$name: no such contestant"
		[[ -z ${peer:-} || $peer:$batch == "${BASH_REMATCH[1]}:${BASH_REMATCH[3]}" ]] || usage "$1: one program cannot be all of these"
		peer=${BASH_REMATCH[1]} algorithm=${BASH_REMATCH[2]} batch=${BASH_REMATCH[3]}
	done
}

parse "$@"
program=$("$here/build.sh") || give_up 4 "the build failed, see above"
prepare
# The tables ask for transparent huge pages; this makes the packet buffers and the keys use them as well.
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1
export BED_FOLDER=$folder BED_PEER=$peer BED_BATCH=$batch BED_PAGES=$(transparent_pages) BED_LOWERS_HOP_LIMIT=1
serve_or_check taskset -c "${CORE:-0}" "$program" bed "$folder/table.txt" "$algorithm" "$ports" "$batch"
