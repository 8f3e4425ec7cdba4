#!/usr/bin/env bash
# Checks the generator over memif on a table of eight routes: l3fwd and our router behind it, packets that leave by the wrong
# port, and a router that does not start. It needs two cores and, for l3fwd, 2.5 GiB of memory. Usage: peers/dpdk/memif/check.sh
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../checks.sh"

# Prints the commands, and pauses at those that are `sleep`.
speak() {
	local line
	while read -r line; do
		case $line in
		sleep\ *) $line ;;
		*) echo "$line" ;;
		esac
	done <<<"$commands"
}

# expect CODE PATTERN NAME ROUTER [OPTION...]: runs on $input with the commands in $commands.
expect() {
	local code=$1 pattern=$2 name=$3 router=$4 output status
	shift 4
	output=$(speak | "$here/../memif.sh" --only "memif_${router}_inet:32,memif_${router}_inet6:32" "$@" "$input" 2>&1)
	status=$?
	judge "$code" "$pattern" "memif: $name, $router" "$status" "$output"
}

for router in fullview l3fwd_lpm l3fwd_fib; do
	fresh_ports
	commands=$'slice memif_'$router$'_inet:32 s 1000000 2000000\nslice memif_'$router$'_inet6:32 s 0 1000000\ntotals'
	expect 0 '"counted":[1-9].*"lost_core_ns":' "a slice" $router --serve
	expect 0 '"sent":\([1-9][0-9]*\),"received":\1,"wrong":0' "no packet is lost" $router --serve
	commands='slice bed_inet:32 s 0 1000000'; expect 0 '"counted":[1-9]' "the bed without memif" $router --serve
	commands=quit
	bytes 0100 0200 0300 0400 0500 0000 >"$input/s.inet.answers"
	expect 3 'packet 4 of stream s left by another port' "a packet that leaves by the wrong port" $router
	fresh_ports; echo '300.0.0.0/8 1' >>"$input/table.txt"
	expect 4 'the router has ended before it connected' "a router that does not start" $router
done

# Ours drops what it has in hand when it was stopped for more than a second.
fresh_ports
commands=$(printf 'slice memif_fullview_inet:32 s 0 20000000\nsleep 1.1\n%.0s' {1..8})$'\ntotals'
expect 0 '"sent":\([1-9][0-9]*\),"received":\1,"wrong":0' "no packet is lost while the router is stopped" fullview --serve

conclude
