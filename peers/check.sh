#!/usr/bin/env bash
# Checks the programs of peers/rust and peers/go on a table of eight routes: every library answers
# correctly, wrong answers are reported, and broken input ends in the documented exit code. peers/dpdk/check.sh does the
# same for the C programs. Usage: peers/check.sh [rust] [go]        (without arguments: both)
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/checks.sh"

# expect CODE PATTERN NAME [OPTION...]: runs $program on $input with the commands in $commands.
expect() {
	local code=$1 pattern=$2 name=$3 output status
	shift 3
	output=$("$program" "$@" "$input" 2>&1 <<<"$commands")
	status=$?
	judge "$code" "$pattern" "$language: $name" "$status" "$output"
}

# check LANGUAGE CONTESTANT: commands are tried on this contestant only.
check() {
	language=$1 program=$here/$1/run.sh commands=quit
	fresh_input; expect 0 '"bad":\[\]' "every library answers correctly"
	expect 0 "\"$2\"" "the ready line" --serve
	commands="slice $2 s 1000 1000000"; expect 0 '"counted":.*"lost_core_ns":' "a slice" --serve
	expect 0 '"contestants":\["'"$2"'"\]' "one contestant only" --only "$2" --serve
	commands="slice unknown:1 s 0 1000"; expect 0 'command 1: no such contestant' "an unknown contestant served" --serve
	commands="slice $2 t 0 1000"; expect 0 'command 1: no such stream' "an unknown stream" --serve
	commands="slice $2 s"; expect 0 'command 1: want: slice PEER:BATCH STREAM' "half a command" --serve
	commands="slice $2 s 0 0"; expect 0 'command 1: a slice has 1 to' "a slice without a length" --serve
	expect 1 'unknown' "an unknown contestant" --only unknown:1

	bytes 0100 0200 0300 0400 0500 0000 >"$input/s.inet.answers"
	expect 3 '"bad":1' "a wrong answer"
	expect 3 '10.1.2.255: expected 5, answered 32767' "which answer is wrong"
	commands="slice $2 s 0 1000"; expect 0 'command 1: this contestant answers wrongly' "a slice of a contestant that answers wrongly" --serve
	fresh_input; bytes 0500 0600 0600 0000 >"$input/s.inet6.answers"; expect 3 '2001:db8:1::7: expected 6' "an IPv6 answer"

	fresh_input; rm "$input/table.txt"; expect 2 'table.txt' "no table"
	fresh_input; rm "$input/s.inet.answers"; expect 2 's.inet.answers' "no answers"
	fresh_input; rm "$input"/*.keys; expect 2 'no key file' "no keys"
	fresh_input; bytes 00 >>"$input/s.inet6.keys"; expect 2 'truncated' "half a key"
	fresh_input; echo '10.0.0.0/33 1' >>"$input/table.txt"; expect 2 'table.txt:9' "a length beyond the address"
	fresh_input; echo '10.9.0.0/16 0' >>"$input/table.txt"; expect 2 'table.txt:9' "next hop 0"
}

declare -A contestants=([rust]=prefix_trie_inet:1 [go]=bart_table_inet:1)
(($# > 0)) || set -- rust go
for language in "$@"; do
	check "$language" "${contestants[$language]:?"$language: there are rust and go"}"
done
conclude
