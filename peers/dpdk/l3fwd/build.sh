#!/usr/bin/env bash
# Fetches the source of Debian's DPDK, builds its example l3fwd around the ports of this folder, and prints the path of
# the program. Usage: peers/dpdk/l3fwd/build.sh BATCH|memif-BATCH
#
# Debian packages neither l3fwd nor the sources of the examples, so they come from the source package of the installed
# DPDK. apt uses lists in the build folder, so the system does not change; everything is made below target/peers. l3fwd
# itself changes in the room of its tables, in the call that adds a route to its LPM table (lpm_routes.c) and, for a BATCH
# other than its own 32, in how many packets it takes at once and how many buffers its core caches. For memif it does not request checksum verification, which memif ports cannot do,
# and the generator is built as well.
set -euo pipefail

readonly here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly work=$(realpath -m "${CARGO_TARGET_DIR:-$here/../../../target}")/peers
readonly kind=$1 batch=${1#memif-} bed=$(realpath "$here/../../bed")

give_up() {
	echo "build.sh: $*" >&2
	exit 4
}

# The version of the installed libraries, which the headers of the drivers have to fit.
source_version() { dpkg-query -W -f '${source:Version}' libdpdk-dev 2>/dev/null; }

# Writes the system's apt sources with deb-src in place of deb.
write_sources() {
	local file
	mkdir -p "$work/apt/sources" "$work/apt/lists/partial"
	for file in /etc/apt/sources.list.d/*.sources; do
		[[ ! -e $file ]] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$work/apt/sources/${file##*/}"
	done
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[[ ! -e $file ]] || sed -n 's/^deb /deb-src /p' "$file" >"$work/apt/sources/$(basename "$file" .list).list"
	done
}

fetch() {
	local version=$1 apt=(-qq -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$work/apt/sources"
		-o "Dir::State::Lists=$work/apt/lists" -o APT::Sandbox::User=root)
	for tool in apt-get xz tar; do
		command -v "$tool" >/dev/null || give_up "$tool is missing: DPDK's source cannot be fetched"
	done
	write_sources
	# Another apt source may have no source packages; only DPDK's package has to be found.
	apt-get "${apt[@]}" update >&2 || true
	(cd "$work" && apt-get "${apt[@]}" source --download-only "dpdk=$version" >&2) ||
		give_up "the apt sources in /etc/apt gave no source of dpdk $version: check the network"
}

unpack() {
	local version=$1 archives
	archives=("$work"/dpdk_"${version%-*}".orig.tar.*)
	[[ -e ${archives[0]} ]] || fetch "$version"
	archives=("$work"/dpdk_"${version%-*}".orig.tar.*)
	rm -rf "$work/unpacking"
	mkdir "$work/unpacking"
	tar -xf "${archives[0]}" -C "$work/unpacking" --strip-components=1
	mv "$work/unpacking" "$source"
}

# resize FILE PATTERN REPLACEMENT: fails if the pattern is not found, because another version of l3fwd may have other lines.
resize() {
	grep -q "$2" "$1" || give_up "$1 has no \"$2\": this script does not know this version of l3fwd"
	sed -i "s/$2/$3/" "$1"
}

# Room for a full view: 2^20 IPv4 and 2^18 IPv6 routes.
enlarge() { # FOLDER
	resize "$1/l3fwd_lpm.c" '\(IPV4_L3FWD_LPM_MAX_RULES *\)1024' '\1(1 << 20)'
	resize "$1/l3fwd_lpm.c" '\(IPV4_L3FWD_LPM_NUMBER_TBL8S *\)(1 << 8)' '\1(1 << 14)'
	resize "$1/l3fwd_lpm.c" '\(IPV6_L3FWD_LPM_MAX_RULES *\)1024' '\1(1 << 18)'
	resize "$1/l3fwd_lpm.c" '\(IPV6_L3FWD_LPM_NUMBER_TBL8S *\)(1 << 16)' '\1(1 << 18)'
	resize "$1/l3fwd_fib.c" 'config_ipv4.max_routes = (1 << 16)' 'config_ipv4.max_routes = (1 << 20)'
	resize "$1/l3fwd_fib.c" 'config.max_routes = (1 << 16) - 1' 'config.max_routes = (1 << 18)'
	resize "$1/l3fwd_fib.c" 'config.trie.num_tbl8 = (1 << 15)' 'config.trie.num_tbl8 = (1 << 19)'
	[[ $kind != memif-* ]] || resize "$1/main.c" '\.offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM' '.offloads = 0'
	[[ $batch == 256 ]] || return 0
	resize "$1/l3fwd.h" '\(MAX_PKT_BURST *\)32' "\\1$batch"
	resize "$1/l3fwd.h" '\(MEMPOOL_CACHE_SIZE *\)256' '\1512'
}

# The headers of drivers are not installed, so they come from the source. l3fwd's own files are compiled without warnings.
compile() { # FOLDER
	local object objects=() file flags headers=()
	read -ra flags <<<"$(pkg-config --cflags libdpdk)"
	for file in examples/common lib/ethdev lib/eal/include drivers/bus/vdev; do
		headers+=(-isystem "$source/$file")
	done
	flags=("${flags[@]/#-I/-isystem}" -O3 -march=native -DALLOW_EXPERIMENTAL_API -DALLOW_INTERNAL_API "${headers[@]}")
	for file in "$1"/*.c; do
		[[ $file != *_route_parse.c ]] || continue # included by others
		object=${file%.c}.o
		"${CC:-cc}" "${flags[@]}" -Drte_lpm_add=add_lpm_route -w -c "$file" -o "$object"
		objects+=("$object")
	done
	for file in "$here"/*.c "$bed"/{bed,frames,inputs}.c; do
		object=$1/ours-$(basename "$file" .c).o
		"${CC:-cc}" "${flags[@]}" -std=gnu11 -Wall -Wextra -Wshadow -c "$file" -o "$object"
		objects+=("$object")
	done
	if [[ $kind == memif-* ]]; then
		"${CC:-cc}" -O3 -march=native -std=gnu11 -Wall -Wextra -Wshadow -o "$1/generator" \
			"$here"/../memif/{generator,server}.c "$bed"/{bed,frames,inputs}.c
	fi
	# shellcheck disable=SC2046
	"${CC:-cc}" -o "$1/l3fwd" "${objects[@]}" $(pkg-config --libs libdpdk) -lrte_bus_vdev
}

is_current() { # PROGRAM
	[[ -x $1 && -z $(find "$here" "$here/../memif" "$here/../mbufs.h" "$bed" -newer "$1" -type f) ]]
}

for tool in pkg-config "${CC:-cc}"; do
	command -v "$tool" >/dev/null || give_up "$tool is missing: apt install build-essential pkg-config libdpdk-dev"
done
version=$(source_version) || give_up "libdpdk-dev is not installed, or not by dpkg: apt install libdpdk-dev"
readonly source=$work/dpdk-$version
readonly built=$work/l3fwd-$version-$kind
mkdir -p "$work"
[[ -d $source ]] || unpack "$version"
if ! is_current "$built/l3fwd"; then
	rm -rf "$built"
	cp -r "$source/examples/l3fwd" "$built"
	enlarge "$built"
	compile "$built" >&2
fi
echo "$built/l3fwd"
