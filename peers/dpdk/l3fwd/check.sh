#!/usr/bin/env bash
# Checks l3fwd in its test bed on a table of eight routes: packets that leave by the right and the wrong port,
# both kinds of tables, commands, and every kind of broken input. It needs neither huge pages nor root. Usage: peers/dpdk/l3fwd/check.sh
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../checks.sh"

# expect CODE PATTERN NAME CONTESTANTS [OPTION...]: runs on $input with the commands in $commands.
expect() {
	local code=$1 pattern=$2 name=$3 contestants=$4 output status
	shift 4
	output=$("$here/../l3fwd.sh" --only "$contestants" "$@" "$input" 2>&1 <<<"$commands")
	status=$?
	judge "$code" "$pattern" "l3fwd: $name" "$status" "$output"
}

commands=quit both=l3fwd_fib_inet:32,l3fwd_fib_inet6:32
fresh_ports
for kind in lpm fib lpm_parsing fib_parsing; do
	expect 0 '"bad":\[\],"refused":\[\]' "$kind forwards correctly" "l3fwd_${kind}_inet:32,l3fwd_${kind}_inet6:32"
done
expect 0 '"bad":\[\],"refused":\[\]' "bursts of 256" l3fwd_lpm_inet:256
commands=$'slice l3fwd_fib_inet:32 s 1000000 2000000\ntotals'
expect 0 '"counted":[1-9].*"lost_core_ns":' "a slice" $both --serve
expect 0 '"sent":\([1-9][0-9]*\),"received":\1,"wrong":0' "no packet is lost" $both --serve
commands=$'slice l3fwd_fib_inet:32 s 0 1000\nslice l3fwd_fib_inet6:32 s 0 1000000\ntotals'
expect 0 '"sent":\([1-9][0-9]*\),"received":\1,"wrong":0' "a slice of the other family" $both --serve
commands=$'slice bed_inet:32 s 0 1000000\ntotals'
expect 0 '"sent":0,"received":0,"wrong":0' "the bed without l3fwd" $both --serve
commands='slice unknown:32 s 0 1000'; expect 0 'command 1: no such contestant' "an unknown contestant served" $both --serve
commands='slice l3fwd_fib_inet:32 s'; expect 0 'command 1: want: slice PEER:BATCH' "half a command" $both --serve
commands=quit
expect 1 'no such contestant' "an unknown contestant" unknown:32
expect 1 'one program cannot be all of these' "two programs at once" l3fwd_fib_inet:32,l3fwd_lpm_inet:32

bytes 0100 0200 0300 0400 0500 0000 >"$input/s.inet.answers"
expect 3 'packet 4 of stream s left by another port' "a packet that leaves by the wrong port" $both
commands='slice l3fwd_fib_inet:32 s 0 1000'; expect 0 'forwards wrongly and is not timed' "a slice of a contestant that forwards wrongly" $both --serve
commands=quit
fresh_ports; bytes 0500 0600 0900 0100 >"$input/s.inet6.answers"
expect 3 'packet 3 of stream s left by another port' "a packet without a route" $both
fresh_ports; rm "$input/table.txt"; expect 2 'table.txt: not found' "no table" $both
fresh_ports; bytes 00 >>"$input/s.inet6.keys"; expect 2 'truncated' "half a key" $both
fresh_ports; echo '10.9.0.0/16 32' >>"$input/table.txt"; expect 5 'next hop 32' "more next hops than ports" $both
expect 0 '"refused":\[{"contestant":"l3fwd_fib_inet:32","why":"next hop 32' "a refusal served" $both --serve
for route in 0.0.0.0/0 ::/0; do
	fresh_ports; echo "$route 1" >>"$input/table.txt"
	expect 5 "$route: rte_lpm" "$route with lpm" l3fwd_lpm_inet:32,l3fwd_lpm_inet6:32
	expect 0 "\"refused\":\[{\"contestant\":\"l3fwd_lpm_inet:32\",\"why\":\"$route: " "$route with lpm served" l3fwd_lpm_inet:32 --serve
done
fresh_ports; printf '%s/25 1\n' 10.{0..64}.{0..255}.0 >>"$input/table.txt"
expect 5 '16640 /24s with longer prefixes: it has tables for 16384' "too many split /24s for lpm" l3fwd_lpm_inet:32

conclude
