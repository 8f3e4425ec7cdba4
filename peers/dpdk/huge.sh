# Sourced by run.sh and l3fwd.sh: reserves the huge pages a program wants, runs it, and gives them back on every end.
# Wants the MiB in $memory_mb before `reserve`.

readonly pool=/sys/kernel/mm/hugepages/hugepages-2048kB
child=
pages_added=0

say() { echo "${0##*/}: $*" >&2; }

# give_up EXIT-CODE MESSAGE
give_up() {
	say "$2"
	exit "$1"
}

# What the script that sources this has to clean up besides.
tidy() { :; }

# Ends the program first: pages in use cannot be given back.
clean_up() {
	local status=$?
	trap - EXIT
	trap '' INT TERM HUP
	if [[ -n $child ]] && kill -TERM "$child" 2>/dev/null; then
		wait "$child" 2>/dev/null || true
	fi
	tidy
	put_back
	exit "$status"
}

# As many as were added, and not to what was there before: another program may have added its own since.
put_back() {
	local reserved
	((pages_added > 0)) || return 0
	reserved=$(<"$pool/nr_hugepages")
	echo $((reserved - pages_added)) >"$pool/nr_hugepages" || say "could not take back $pages_added huge pages; do it by hand"
	pages_added=0
}

# Asked for more than there is, the kernel hands the pool all it can find, and every other program on the machine
# starves. So this comes before the pool is touched, and leaves others a gibibyte.
refuse_too_much() {
	local available_mb
	[[ $memory_mb =~ ^[1-9][0-9]{0,8}$ ]] || give_up 1 "MEMORY_MB=$memory_mb: want a whole number of MiB"
	available_mb=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
	((memory_mb + 1024 <= available_mb)) ||
		give_up 4 "$available_mb MiB of memory are available: too few for MEMORY_MB=$memory_mb and 1024 to spare"
}

# Tops the pool up so that memory_mb is free. Where that fails the program runs on 4 KiB pages and says so.
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
	reserved=$(<"$pool/nr_hugepages")
	pages_added=$((wanted - free))
	echo $((reserved + pages_added)) >"$pool/nr_hugepages" || true
	# What the kernel found, which may be less.
	pages_added=$(($(<"$pool/nr_hugepages") - reserved))
	free=$(<"$pool/free_hugepages")
	((free >= wanted)) && return
	say "only $free of $wanted huge pages are free: memory is short or fragmented"
	put_back
}

# Gives the pages back on every end but kill -9.
reserve() {
	refuse_too_much
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP
	reserve_huge_pages
}

# run_child PROGRAM [ARGUMENT...]: in the background, so that a signal to the script is acted on at once; `<&0` hands it
# our standard input even so.
run_child() {
	local status=0
	"$@" <&0 &
	child=$!
	wait "$child" || status=$?
	child=
	return "$status"
}
