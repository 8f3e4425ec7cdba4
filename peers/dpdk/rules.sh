# l3fwd.sh and memif.sh source this file: it reads their options and writes the table in l3fwd's format.

# The room in l3fwd's tables as l3fwd/build.sh compiles it, and the most ports besides the one that receives.
readonly most_routes=$((1 << 20)) most_routes6=$((1 << 18)) most_ports=31
# How many /24s may have longer prefixes: the second-level tables of LPM (l3fwd/build.sh) and of FIB (as DPDK has them).
readonly most_split_lpm=$((1 << 14)) most_split_fib=$((1 << 15))

# Writes l3fwd's two files of rules from the table, and prints what of the table l3fwd cannot hold with $mode, if anything: it
# ends at a route that it cannot add. Without $mode another router has the table. l3fwd
# takes the next hop as the number of a port. Both files need a rule; a family without routes gets one that no packet uses.
# IPv4 prefixes longer than /24 come last, as l3fwd/lpm_routes.c needs them.
write_rules() {
	local split=most_split_${mode:-}
	awk -v folder="$scratch" -v most="$most_routes" -v most6="$most_routes6" -v ports="$most_ports" -v mode="${mode:-}" \
		-v most_split="${!split:-0}" '
		seen[$1]++ { twice = $1 }
		/:/ { print "R" $1, $2 >(folder "/rules6"); routes6++ }
		!/:/ { split($1, prefix, "/"); print "R" $1, $2 >(folder (prefix[2] > 24 ? "/longer" : "/rules")); routes++ }
		!/:/ && prefix[2] > 24 { sub(/[.][0-9]+$/, "", prefix[1]); if (!halved[prefix[1]]++) splits++ }
		/\/0 / { default_route = $1 }
		$2 > highest { highest = $2 }
		END {
			if (!routes) print "R192.0.2.0/24 1" >(folder "/rules")
			if (!routes6) print "R2001:db8::/32 1" >(folder "/rules6")
			if (highest > ports) print "next hop " highest ": a next hop is a port to l3fwd, and it has " ports
			else if (routes > most) print routes " IPv4 routes: it is built for " most
			else if (routes6 > most6) print routes6 " IPv6 routes: it is built for " most6
			else if (mode == "lpm" && default_route) print default_route ": rte_lpm and rte_lpm6 have no room for a default route"
			else if (mode && splits > most_split) print splits " /24s with longer prefixes: it has tables for " most_split
			else if (twice) print twice " is in the table twice"
		}' "$1/table.txt"
	[[ ! -e $scratch/longer ]] || cat "$scratch/longer" >>"$scratch/rules"
}

# Prints the ready line of a program that does not take part, and ends.
refuse() { # WHY
	local name separator='' refused=''
	for name in ${only//,/ }; do
		refused+="$separator{\"contestant\":\"$name\",\"why\":\"$1\"}" separator=,
	done
	echo "{\"ready\":true,\"pages\":\"\",\"contestants\":[],\"facts\":[],\"bad\":[],\"refused\":[$refused],\"streams\":[]}"
	cat >/dev/null
	exit 0
}

# Reads the options into $only, $serve and $folder.
parse() {
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
	folder=$1
	choose "$only"
	[[ -n ${peer:-} ]] || usage "no contestant"
	[[ -r $folder/table.txt ]] || give_up 2 "$folder/table.txt: not found; peers/README.md lists the files a folder needs"
}

# Writes the rules into $scratch and the number of ports into $ports. Ends with the reason if l3fwd cannot hold the table.
prepare() {
	local obstacle
	scratch=$(mktemp -d)
	tidy() { rm -rf "$scratch"; }
	trap clean_up EXIT
	obstacle=$(write_rules "$folder")
	if [[ -n $obstacle ]]; then
		$serve && refuse "$obstacle"
		give_up 5 "$obstacle"
	fi
	ports=$(awk '$2 > highest { highest = $2 } END { print highest }' "$folder/table.txt")
}

# Sets $eal to the options that isolate a program of DPDK and place its memory on the available pages, and $pages to their
# size.
choose_memory() {
	eal=(--no-pci --no-telemetry --force-max-simd-bitwidth=512 --log-level=lib.eal:error --log-level=user1:error)
	if (($(<"$pool/free_hugepages") * 2 < memory_mb)); then
		say "$memory_mb MB on 4 KiB pages (--no-huge): too few free huge pages"
		eal+=(--no-huge --no-shconf) pages=4K
	else
		eal+=(--in-memory) pages=2M
	fi
}

# serve_or_check PROGRAM...: prints the replies of the program, which it writes to descriptor 3. Its standard output is
# dropped: l3fwd prints every route.
serve_or_check() {
	if $serve; then
		run_child "$@" 3>&1 >/dev/null
	else
		run_child "$@" 3>"$scratch/ready" >/dev/null </dev/null
		cat "$scratch/ready"
		! grep -q '"bad":[[]{' "$scratch/ready" || exit 3
	fi
}
