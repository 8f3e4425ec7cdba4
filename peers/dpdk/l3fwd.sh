#!/usr/bin/env bash
# Runs DPDK's l3fwd in a test bed of its own (l3fwd/): its ports lead to a generator and a receiver on its own core.
# Usage: peers/dpdk/l3fwd.sh --only l3fwd_MODE_inet:BATCH,l3fwd_MODE_inet6:BATCH [--serve] FOLDER
# MODE is lpm, fib, lpm_parsing or fib_parsing, BATCH 32 or 256 (see peers/README.md).
set -euo pipefail

readonly here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly core=${CORE:-0}
. "$here/huge.sh"

usage() { give_up 1 "$1; usage: l3fwd.sh --only l3fwd_fib_inet:32,l3fwd_fib_inet6:32 [--serve] FOLDER"; }

# What l3fwd's tables have room for once built (l3fwd/build.sh), and its ports beside the one packets come in by.
readonly most_routes=$((1 << 20)) most_routes6=$((1 << 18)) most_ports=31

# All contestants named have to be the same program with the same options.
choose() { # NAME,NAME…
	local name
	for name in ${1//,/ }; do
		[[ $name =~ ^(l3fwd_(lpm|fib)(_parsing)?)_inet6?:(32|256)$ ]] || usage "$name: no such contestant"
		[[ -z ${peer:-} || $peer:$batch == "${BASH_REMATCH[1]}:${BASH_REMATCH[4]}" ]] ||
			usage "$1: one program cannot be all of these"
		peer=${BASH_REMATCH[1]} mode=${BASH_REMATCH[2]} parsing=${BASH_REMATCH[3]} batch=${BASH_REMATCH[4]}
	done
}

# Writes l3fwd's two files of rules from the table, and says what l3fwd cannot hold of it: nothing if it can. The next
# hop is the number of a port to l3fwd. Both files need a rule; a family without routes gets one nobody is sent by.
write_rules() {
	awk -v folder="$scratch" -v most="$most_routes" -v most6="$most_routes6" -v ports="$most_ports" '
		/:/ { print "R" $1, $2 >(folder "/rules6"); routes6++ }
		!/:/ { print "R" $1, $2 >(folder "/rules"); routes++ }
		$2 > highest { highest = $2 }
		END {
			if (!routes) print "R192.0.2.0/24 1" >(folder "/rules")
			if (!routes6) print "R2001:db8::/32 1" >(folder "/rules6")
			if (highest > ports) print "next hop " highest ": a next hop is a port to l3fwd, and it has " ports
			else if (routes > most) print routes " IPv4 routes: it is built for " most
			else if (routes6 > most6) print routes6 " IPv6 routes: it is built for " most6
		}' "$1/table.txt"
}

# The ready line of a program that takes no part.
refuse() { # WHY
	local name separator='' refused=''
	for name in ${only//,/ }; do
		refused+="$separator{\"contestant\":\"$name\",\"why\":\"$1\"}" separator=,
	done
	echo "{\"ready\":true,\"pages\":\"\",\"contestants\":[],\"facts\":[],\"bad\":[],\"refused\":[$refused],\"streams\":[]}"
	cat >/dev/null
	exit 0
}

# The ports: one that packets come in by, and as many as the table has next hops.
port_arguments() {
	local number
	for ((number = 0; number <= ports; number++)); do
		printf '%s\n' --vdev "net_bed$number"
	done
}

only='' serve=false
while (($# > 1)); do
	case $1 in
	--only) only=$2; shift ;;
	--serve) serve=true ;;
	*) usage "$1: unknown" ;;
	esac
	shift
done
(($# == 1)) && [[ $1 != -* ]] || usage "no folder"
readonly folder=$1
choose "$only"
[[ -n ${peer:-} ]] || usage "no contestant"
[[ -r $folder/table.txt ]] || give_up 2 "$folder/table.txt: not there; peers/README.md lists the files a folder needs"
program=$("$here/l3fwd/build.sh" "$batch") || give_up 4 "l3fwd could not be built, see above"

scratch=$(mktemp -d)
tidy() { rm -rf "$scratch"; }
trap clean_up EXIT
obstacle=$(write_rules "$folder")
if [[ -n $obstacle ]]; then
	$serve && refuse "$obstacle"
	give_up 5 "$obstacle"
fi
ports=$(awk '$2 > highest { highest = $2 } END { print highest }' "$folder/table.txt")

# What their tables take for a full view, and as much again for packets.
case $mode in lpm) memory_mb=${MEMORY_MB:-1024} ;; fib) memory_mb=${MEMORY_MB:-1536} ;; esac
reserve
memory=(--in-memory) pages=2M
if (($(<"$pool/free_hugepages") * 2 < memory_mb)); then
	say "$memory_mb MB on 4 KiB pages (--no-huge): too few free huge pages"
	memory=(--no-huge --no-shconf) pages=4K
fi
mapfile -t port_options < <(port_arguments)
export BED_FOLDER=$folder BED_PEER=$peer BED_BATCH=$batch BED_PAGES=$pages BED_TYPES=${parsing:+none}
options=(-p "$(printf '0x%x' $(((1 << (ports + 1)) - 1)))" --config "(0,0,$core)" --lookup "$mode"
	--rule_ipv4 "$scratch/rules" --rule_ipv6 "$scratch/rules6" ${parsing:+--parse-ptype})
command=("$program" --no-pci --no-telemetry --force-max-simd-bitwidth=512 --log-level=lib.eal:error
	--log-level=user1:error -l "$core" -m "$memory_mb" "${memory[@]}" "${port_options[@]}" -- "${options[@]}")

# l3fwd itself prints every route on its standard output.
if $serve; then
	run_child "${command[@]}" 3>&1 >/dev/null
else
	run_child "${command[@]}" 3>"$scratch/ready" >/dev/null </dev/null
	cat "$scratch/ready"
	! grep -q '"bad":[[]{' "$scratch/ready" || exit 3
fi
