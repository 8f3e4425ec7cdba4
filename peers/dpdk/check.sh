#!/usr/bin/env bash
# Checks dpdk-lookup, built with the address and undefined-behaviour sanitizers, on a table of eight routes:
# correct answers, wrong answers and every kind of broken input must end in the documented exit code.
# It needs neither huge pages nor root. Usage: peers/dpdk/check.sh
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$here/../build/dpdk-lookup-sanitized
. "$here/../checks.sh"

make --silent -C "$here" SANITIZE=1 || exit 4

# expect CODE PATTERN NAME [OPTION...]: runs on $input and checks the exit code and one line of the output.
expect() {
	local code=$1 pattern=$2 name=$3 output status
	shift 3
	output=$("$program" --memory 256 --samples 1 --seconds 0.001 "$@" "$input" 2>&1)
	status=$?
	judge "$code" "$pattern" "$name" "$status" "$output"
}

fresh_input; expect 0 '"stream":"s","batch":32,"mlps":.*"bad":0' "right answers"
fresh_input; printf 'slice rte_fib_dir24_8_2b_scalar:32 s 1000 1000000\nquit\n' >"$scratch/commands"
expect 0 '"counted":.*"lost_core_ns":' "a slice" --serve <"$scratch/commands"
printf 'slice nothing:32 s 0 1000\n' >"$scratch/commands"
expect 0 '"error":"command 1: no such contestant' "a served mistake" --serve <"$scratch/commands"
bytes 0100 0200 0300 0400 0500 0000 >"$input/s.inet.answers"
printf 'slice rte_lpm_lookup:1 s 0 1000\n' >"$scratch/commands"
expect 0 '"contestant":"rte_lpm_lookup:1","family":"inet","stream":"s","bad":1,"of":6' "wrong answers served" \
	--serve <"$scratch/commands"
expect 0 'command 1: this contestant answers wrongly' "a slice of a contestant that answers wrongly" --serve <"$scratch/commands"
fresh_input; echo '0.0.0.0/0 7' >>"$input/table.txt"
expect 0 '"contestant":"rte_lpm_lookup:1","why":"rte_lpm refuses inet route' "a refusal served" \
	--serve <"$scratch/commands"
fresh_input
expect 1 'no such contestant' "an unknown contestant" --only nothing:32
expect 1 'usage:' "an unknown option" --nothing
expect 4 'ask for less' "more memory than the machine has" --memory 1048576
expect 4 'EAL does not start' "a core that does not exist" --core 127

bytes 0100 0200 0300 0400 0500 0000 >"$input/s.inet.answers"
expect 3 '1 bad of 6; first is key 4, 10.1.2.255, expected 5' "a wrong IPv4 answer"
fresh_input; bytes 0500 0600 0600 0000 >"$input/s.inet6.answers"
expect 3 '1 bad of 4; first is key 2, 2001:db8:1::7, expected 6' "a wrong IPv6 answer"

fresh_input; rm "$input/table.txt"; expect 2 'table.txt: No such file' "no table"
fresh_input; rm "$input/s.inet.answers"; expect 2 's.inet.answers: No such file' "no answers"
fresh_input; rm "$input"/*.keys; expect 2 'no key file' "no keys"
fresh_input; bytes 00 >>"$input/s.inet6.keys"; expect 2 'truncated: 65 bytes' "half a key"
fresh_input; bytes 0000 >>"$input/s.inet.answers"; expect 2 '7 answers for the 6 keys' "too many answers"
fresh_input; : >"$input/s.inet.keys"; expect 2 'empty' "an empty file"
fresh_input; cp "$input/s.inet.keys" "$input/a b.inet.keys"; expect 2 'stream names' "a stream name with a blank"
fresh_input; sed -i '/:/d' "$input/table.txt"; expect 2 'no inet6 route' "keys without routes"

for line in '10.0.0.0/8' '10.0.0.0 1' '10.0.0.0/33 1' '10.0.0.0/-1 1' '10.0.0.1/8 1' '10.0.0.0/8 0' \
	'10.0.0.0/8 65536' '10.0.0/8 1' '2001:db8::1/32 1' '10.0.0.0/8 1 x' ''; do
	fresh_input; echo "$line" >>"$input/table.txt"; expect 2 'table.txt:9: ' "the table line \"$line\""
done
fresh_input; echo '10.9.0.0/16 32768' >>"$input/table.txt"; expect 5 'rte_fib refuses' "a next hop beyond two bytes"
fresh_input; echo '0.0.0.0/0 7' >>"$input/table.txt"; expect 5 'rte_lpm refuses' "a default route in rte_lpm"

conclude
