#!/usr/bin/env bash
# Runs DPDK's l3fwd between the interfaces of a test bed, over packet sockets: a device of `fullview rates`, which names the
# interfaces. Build it first, because a device has seconds to forward: peers/dpdk/l3fwd/build.sh memif-32
# Usage: fullview rates --devices kernel --command l3fwd=peers/dpdk/l3fwd-device.sh
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

program=$("$here/l3fwd/build.sh" memif-32)
# What DPDK and this script write goes with the process.
RUNTIME_DIRECTORY=$(mktemp -d)
export RUNTIME_DIRECTORY
trap 'rm -rf "$RUNTIME_DIRECTORY"' EXIT
# The test bed leaves one core to the device.
core=$(taskset -cp $$ | sed 's/.*: //')
# The networks of the host behind the second interface, as in docs/reference/rates.md.
echo 'R10.0.2.0/24 1' >"$RUNTIME_DIRECTORY/rules4"
echo 'R2001:2:0:2::/64 1' >"$RUNTIME_DIRECTORY/rules6"
"$program" --no-huge -m 512 --no-pci --no-telemetry --no-shconf --log-level=warning -l "$core" \
	--vdev "net_af_packet0,iface=${INGRESS:?}" --vdev "net_af_packet1,iface=${EGRESS:?}" \
	-- -p 0x3 -P --config "(0,0,$core),(1,0,$core)" --lookup lpm --parse-ptype --eth-dest=1,02:00:00:00:00:04 \
	--rule_ipv4 "$RUNTIME_DIRECTORY/rules4" --rule_ipv6 "$RUNTIME_DIRECTORY/rules6"
