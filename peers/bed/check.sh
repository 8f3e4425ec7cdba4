#!/usr/bin/env bash
# Checks the bed, built with the address and undefined-behaviour sanitizers around the smallest router (test_router.c), and
# our router on the same bed: packets that come out right and wrong, lost packets, slices, and wrong commands.
# Usage: peers/bed/check.sh
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../checks.sh"

"${CC:-cc}" -std=gnu11 -Wall -Wextra -Wshadow -Werror -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all \
	-o "$scratch/test_router" "$here"/{bed,frames,inputs,test_router}.c || exit 4

# Our router takes its folder last, the test router first.
test_router() {
	ASAN_OPTIONS=detect_leaks=0 BED_FOLDER=$input BED_PEER=test BED_BATCH=32 BED_PAGES=4K \
		timeout 60 "$scratch/test_router" "$input" "$@" 3>&1
}
fullview_dpdk_lpm4() { "$here/../fullview/run.sh" --only fullview_dpdk_lpm4_inet:32,fullview_dpdk_lpm4_inet6:32 --serve "$input"; }

# expect PATTERN NAME ROUTER [FAULT]: runs on $input with the commands in $commands and looks for a line of the output.
expect() {
	local pattern=$1 name=$2 output
	shift 2
	output=$("$@" 2>&1 <<<"$commands")
	judge 0 "$pattern" "bed: $1: $name" 0 "$output"
}

for router in test_router fullview_dpdk_lpm4; do
	name=${router%_router}
	fresh_ports
	commands=quit
	expect '"bad":\[\],"refused":\[\]' "every packet comes out right" "$router"
	commands="slice ${name}_inet:32 s 100000 1000000"
	expect '"counted":[1-9].*"offered":[1-9].*"time_ns":[1-9].*"lost_core_ns":' "a slice" "$router"
	commands=$(printf 'slice %s_inet:32 s 0 1000000\ntotals' "$name")
	expect '"sent":\([1-9][0-9]*\),"received":\1,"wrong":0' "no packet is lost" "$router"
	commands=$(printf 'slice %s_inet:32 s 0 1000\nslice %s_inet6:32 s 0 1000000\ntotals' "$name" "$name")
	expect '"sent":\([1-9][0-9]*\),"received":\1,"wrong":0' "a slice of the other family" "$router"
	commands=$(printf 'slice bed_inet6:32 s 1000 1000000\ntotals')
	expect '"sent":0,"received":0,"wrong":0' "the bed without the router" "$router"
	commands='slice unknown:32 s 0 1000'; expect 'command 1: no such contestant' "an unknown contestant" "$router"
	commands="slice ${name}_inet:32 t 0 1000"; expect 'command 1: no such contestant' "an unknown stream" "$router"
	commands="slice ${name}_inet:32 s 0 0"; expect 'command 1: a slice has 1 to' "a slice without a length" "$router"
	commands="slice ${name}_inet:32 s"; expect 'command 1: want: slice PEER:BATCH' "half a command" "$router"
	bytes 0100 0200 0300 0400 0500 0000 >"$input/s.inet.answers"
	expect 'packet 4 of stream s left by another port' "a packet that leaves by the wrong port" "$router"
	commands="slice ${name}_inet:32 s 0 1000"
	expect 'command 1: this contestant forwards wrongly' "a slice of a router that forwards wrongly" "$router"
	commands=quit
	fresh_ports; bytes 00 >>"$input/s.inet6.keys"; expect 'truncated' "half a key" "$router"
done

fresh_ports
commands=$(printf 'slice test_inet:32 s 0 20000000\ntotals')
expect '"sent":\([0-9]*\),"received":[^,]*,"wrong":[1-9]' "a TTL that is not lowered is found in slices" test_router garble
# One route for all packets, so that they leave in one call.
echo '10.0.0.0/8 1' >"$input/table.txt"
bytes 0100000a 0100000a 0100000a 0100000a 0100000a 0100000a >"$input/s.inet.keys"
bytes 0100 0100 0100 0100 0100 0100 >"$input/s.inet.answers"
rm "$input"/*.inet6.*
expect '"sent":\([0-9]*\),"received":[^,]*,"wrong":[1-9]' "a fault behind the first packet of a call" test_router last
fresh_ports
cp "$input/s.inet.keys" "$scratch/keys" && cp "$input/s.inet.answers" "$scratch/answers"
# More packets than a router forwards that loses one of a hundred and one and has 128 buffers.
for ((i = 0; i < 2200; i++)); do cat "$scratch/keys"; done >"$input/s.inet.keys"
for ((i = 0; i < 2200; i++)); do cat "$scratch/answers"; done >"$input/s.inet.answers"
commands=quit
expect '"stream":"s","bad":[1-9][0-9]*,"of":13200}.*"bad":4,"of":4}' "a router that keeps every buffer" test_router lose
commands=$(printf 'slice test_inet:32 s 0 20000000\ntotals')
fresh_ports
expect '"stream":"s","bad":1,"of":6}' "a packet that comes out instead of another" test_router twice
commands=$(printf 'slice test_inet:32 s 0 20000000\ntotals')
# The six packets of the verification are fewer than a hundred; the slices that follow lose some.
output=$(test_router lose 2>&1 <<<"$commands" | tail -1)
if [[ $output =~ \"sent\":([0-9]+),\"received\":([0-9]+) ]] && ((BASH_REMATCH[1] > BASH_REMATCH[2])); then
	echo "ok      bed: lost packets are in the totals"
else
	echo "FAILED  bed: lost packets are in the totals: $output"
	failures=$((failures + 1))
fi

conclude
