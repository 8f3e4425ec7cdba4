# run.sh, l3fwd.sh and memif.sh source this file: it reserves the huge pages that a program needs, runs the program, and
# returns the pages however the program ends. The caller sets $memory_mb, in MiB, before it calls `reserve`.

readonly pool=/sys/kernel/mm/hugepages/hugepages-2048kB
child=
pages_added=0
pool_lock=

say() { echo "${0##*/}: $*" >&2; }

# give_up EXIT-CODE MESSAGE
give_up() {
	say "$2"
	exit "$1"
}

# The script that sources this file replaces it to clean up what it made.
tidy() { :; }

# end_process PID: ends a child, which may be stopped. A program can lock itself up in DPDK as it ends, and is killed after five seconds.
end_process() {
	local tries
	kill -TERM "$1" 2>/dev/null || return 0
	kill -CONT "$1" 2>/dev/null || true
	for ((tries = 0; tries < 50; tries++)); do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.1
	done
	kill -KILL "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}

# Ends the program first: pages in use cannot be given back.
clean_up() {
	local status=$?
	trap - EXIT
	trap '' INT TERM HUP
	[[ -z $child ]] || end_process "$child"
	tidy
	put_back
	exit "$status"
}

# Between these two no other script changes the number of pages: each would count the other's pages as its own. A script that
# a signal ends in between has the lock already.
lock_pool() {
	[[ -n $pool_lock ]] || exec {pool_lock}<"$pool/nr_hugepages"
	flock "$pool_lock"
}

unlock_pool() {
	exec {pool_lock}<&-
	pool_lock=
}

# The pages that stay when no program uses them. The kernel counts others too: those in use that were taken away, which go when they
# are free. A number that is written means the ones that stay.
lasting_pages() {
	echo $(($(<"$pool/nr_hugepages") - $(<"$pool/surplus_hugepages")))
}

# Takes away as many pages as were added instead of restoring the number from before: another program may have added pages
# in the meantime.
put_back() {
	local reserved
	((pages_added > 0)) || return 0
	lock_pool
	reserved=$(lasting_pages)
	echo $((reserved - pages_added)) >"$pool/nr_hugepages" || say "could not return $pages_added huge pages; lower $pool/nr_hugepages by that number yourself"
	pages_added=0
	unlock_pool
}

# When a program asks for more pages than there are, the kernel gives the pool all memory it can find, and the other
# programs on the machine run out of memory. So this check comes first, and it leaves them one gibibyte.
refuse_too_much() {
	local available_mb
	[[ $memory_mb =~ ^[1-9][0-9]{0,8}$ ]] || give_up 1 "MEMORY_MB=$memory_mb: want a whole number of MiB"
	available_mb=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
	((memory_mb + 1024 <= available_mb)) ||
		give_up 4 "$available_mb MiB of memory are available: too few for MEMORY_MB=$memory_mb and 1024 to spare"
}

# Adds pages to the pool until memory_mb is free. If that fails, the program uses 4 KiB pages and reports it.
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
	lock_pool
	reserved=$(lasting_pages) free=$(<"$pool/free_hugepages")
	pages_added=$((wanted > free ? wanted - free : 0))
	echo $((reserved + pages_added)) >"$pool/nr_hugepages" || true
	# The kernel may have found fewer.
	pages_added=$(($(lasting_pages) - reserved))
	free=$(<"$pool/free_hugepages")
	unlock_pool
	((free >= wanted)) && return
	say "only $free of $wanted huge pages are free: memory is short or fragmented"
	put_back
}

# The script cleans up however it ends, except by kill -9.
clean_up_at_end() {
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP
}

reserve() {
	refuse_too_much
	clean_up_at_end
	reserve_huge_pages
}

# The pages of a program that asks for transparent ones.
transparent_pages() {
	if grep -qF '[never]' /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null; then echo 4K; else echo THP; fi
}

# run_child PROGRAM [ARGUMENT...]: runs the program in the background, so that the script reacts to a signal at once;
# `<&0` still gives it the script's standard input.
run_child() {
	local status=0
	"$@" <&0 &
	child=$!
	wait "$child" || status=$?
	child=
	return "$status"
}
