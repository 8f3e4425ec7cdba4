#!/usr/bin/env bash
# Every check of the project, each a function that runs alone: ./ci.sh [JOB...]. Without a job: all that CI runs.
#
#   packages  install the Debian packages that tests compare against (needs root; else prints what is missing)
#   fmt clippy doc deny budget    the text of the tree
#   test      unit, property, conformance, BIRD, FRR, bgpdump and ministat tests, and the router in namespaces (needs root)
#   isa       that every instruction set of this processor is tested, and the code without vectors; checks aarch64
#   soak      the router under load and churn for FULLVIEW_SOAK seconds (default 60; needs clang and root)
#   churn     two million changes to every table that is patched, while readers check every answer (or FULLVIEW_CHURN)
#   loom      how tables are published and their memory used again, in every interleaving
#   cless     the default features build without a C compiler
#   api       that the public interface of fullview-table is the one in public-api.txt (ACCEPT=1 takes the new one)
#   bpf       the programs for the kernel, and all that loads them (needs clang; the tests need root)
#   capi      the C interface: header, library, example and checks in C, with sanitizers (ACCEPT=1 takes a new header)
#   smoke     a calibration and every experiment once, short
#   fuzz      every fuzz target for FUZZ_SECONDS (default 30; nightly and cargo-fuzz needed)
#   peers_check  that the Rust and Go libraries measured beside ours build, and answer a tiny table rightly
#   peers     every algorithm beside DPDK and other libraries, and our forwarding beside DPDK's l3fwd, which is built
#             from Debian's source package, on the table in TABLE, else a synthetic one (measures for some fifteen
#             minutes, PEERS_QUICK=1 for a few; not in the default set); peers_forward is l3fwd alone
set -euo pipefail
cd "$(dirname "$0")"
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-always}
CI=${CI:-false}
# What is built once and thrown away gains nothing by notes for the next time; of what debuggers want, backtraces need
# places only, and the rest is most of what is written and linked for some fifty test programs.
[ "$CI" != true ] || export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=line-tables-only
# Panics and wrong answers show without a sanitizer, which costs half of the runs; FUZZ_SANITIZER=address for memory.
FUZZ_SANITIZER=${FUZZ_SANITIZER:-none}
FUZZ_SECONDS=${FUZZ_SECONDS:-30}

PACKAGES=(bird2 bgpdump ministat frr iproute2 ethtool iputils-ping dpdk-dev)
C_PACKAGES=(gcc libc6-dev)
BPF_PACKAGES=(clang llvm libbpf-dev iproute2 ethtool iputils-ping)
PEER_PACKAGES=(libdpdk-dev pkg-config gcc make xz-utils)

say() { printf '\n== %s\n' "$*"; }

# Something this machine lacks: a printed reason for a user, a failure in CI.
skip() {
    echo "skipped: $*"
    [ "$CI" != true ] || { echo "in CI nothing may be skipped"; return 1; }
}

missing() { # package...
    local package
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
    done
}

install() { # package...
    local wanted
    mapfile -t wanted < <(missing "$@")
    [ ${#wanted[@]} -gt 0 ] || return 0
    echo "Debian packages needed: ${wanted[*]}"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq
        # A test starts its own daemons; none may come up by itself on the user's machine.
        local policy=/usr/sbin/policy-rc.d own=0
        [ -e $policy ] || { printf '#!/bin/sh\nexit 101\n' >$policy; chmod +x $policy; own=1; }
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${wanted[@]}" || { [ $own = 0 ] || rm -f $policy; return 1; }
        [ $own = 0 ] || rm -f $policy
    else
        skip "not root, or no apt-get: install ${wanted[*]} yourself"
    fi
}

cargo_tool() { # name
    command -v "cargo-$1" >/dev/null || cargo install --quiet --locked "cargo-$1"
}

# For programs whose output is committed: another version may write the same thing otherwise.
cargo_program() { # name version
    "$1" --version 2>/dev/null | grep -qwF "$2" || cargo install --quiet --locked --force "$1@$2"
}

# Compares what was made with what is committed; a difference that is meant is accepted with ACCEPT=1.
accepted() { # made committed
    if [ "${ACCEPT:-}" = 1 ]; then
        cp "$1" "$2"
    elif ! diff -u "$2" "$1"; then
        echo "$2 is not what the code says now. If the change is meant: ACCEPT=1 ./ci.sh $job, and commit the file"
        return 1
    fi
}

packages() { install "${PACKAGES[@]}"; }
fmt() { cargo fmt --all --check; }
clippy() { cargo clippy --workspace --all-targets --locked -- -D warnings; }
doc() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked; }

deny() {
    local log
    cargo_tool deny
    cargo deny --locked check bans licenses sources
    # The advisory database is fetched; without a way out this part cannot run, and says so. Nothing else is forgiven.
    log=$(mktemp)
    if ! cargo deny --locked check advisories 2>"$log"; then
        cat "$log" >&2
        grep -q 'failed to fetch advisory database' "$log" || { rm -f "$log"; return 1; }
        echo "not checked: the advisory database cannot be fetched from here"
    fi
    rm -f "$log"
}

test() { cargo test --workspace --locked; }

# The conformance tests force each instruction set the library finds; what the processor has must be among them.
isa() {
    local isa forced flag said
    said=$(cargo test --locked -p fullview-table --test conformance -- --nocapture batches_inet) || { echo "$said"; return 1; }
    echo "$said"
    forced=$(sed -n 's/.*instruction sets forced: //p' <<<"$said")
    [ -n "$forced" ] || { echo "the conformance tests do not say which instruction sets they forced"; return 1; }
    for isa in avx2 avx512; do
        flag=$isa
        [ $isa = avx2 ] || flag=avx512bw
        grep -qw "$flag" /proc/cpuinfo || { echo "not tested: this processor has no $isa"; continue; }
        grep -qw "$isa" <<<"$forced" || { echo "this processor has $isa, but it was not tested"; return 1; }
    done
    say "isa: without any vectors, as on other processors"
    RUSTFLAGS="${RUSTFLAGS:-} --cfg fullview_portable" cargo test --locked -p fullview-table --lib --test conformance \
        --target-dir "${CARGO_TARGET_DIR:-target}/portable"
    say "isa: aarch64"
    if rustup target list --installed 2>/dev/null | grep -q aarch64-unknown-linux-gnu; then
        cargo check --locked --workspace --target aarch64-unknown-linux-gnu
    else
        echo "not checked: the standard library of aarch64-unknown-linux-gnu is not installed"
    fi
}

churn() { FULLVIEW_CHURN=${FULLVIEW_CHURN:-2000000} cargo test --locked -p fullview-table --test readers -- --nocapture; }

loom() {
    # The code itself, and models of what loom's atomics cannot stand in for.
    RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" cargo test --locked -p fullview-table --lib --test loom_publish \
        --target-dir "${CARGO_TARGET_DIR:-target}/loom" interleavings
}

# cc and friends are hidden behind names that fail; only the linker that rustc calls stays.
# A directory of its own: build scripts that ran before would not run again.
cless() {
    local dir
    dir=$(mktemp -d)
    printf '#!/bin/sh\necho "a C compiler was called: $*" >&2\nexit 1\n' >"$dir/fail"
    chmod +x "$dir/fail"
    CC="$dir/fail" CXX="$dir/fail" HOST_CC="$dir/fail" TARGET_CC="$dir/fail" \
        cargo check --locked --workspace --target-dir "$dir/target" || { rm -rf "$dir"; return 1; }
    rm -rf "$dir"
}

# What the feature `bpf` adds or changes: the default build neither has it nor needs a C compiler. Other tests never come
# near it, and ran in the job `test`.
bpf() {
    install "${BPF_PACKAGES[@]}"
    cargo clippy --locked --all-targets -p fullview -p fullview-bench -p fullview-router -p fullview-plane --features fullview/bpf -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked -p fullview-plane -p fullview-router -p fullview-bench --features fullview-bench/bpf
    cargo test --locked -p fullview -p fullview-bench -p fullview-router -p fullview-plane --features fullview/bpf --bin fullview --lib --examples \
        --test router --test oracle --test bpf --test engine --test ports
}

# The same build as the job above: three ways to forward at once, each beside its own neighbours.
soak() {
    install "${BPF_PACKAGES[@]}"
    FULLVIEW_SOAK=${FULLVIEW_SOAK:-60} cargo test --locked -p fullview -p fullview-bench -p fullview-router -p fullview-plane --features fullview/bpf --test router -- \
        --nocapture soak::
}

# Without the impls that every type has and the derived ones. The tool reads rustdoc's JSON, which is unstable in form
# only: the bootstrap variable lets the stable compiler write it, so that the text depends on no nightly of some day.
api() {
    local made
    cargo_program cargo-public-api 0.52.0
    made=$(mktemp)
    RUSTC_BOOTSTRAP=1 cargo +stable public-api -p fullview-table -sss --color never >"$made"
    accepted "$made" crates/table/public-api.txt
    rm -f "$made"
}

# From the dev profile: its assertions and overflow checks are on. The flags of C are those a careful user would set.
capi() {
    local dir built crate=crates/table-c
    install "${C_PACKAGES[@]}"
    cargo_program cbindgen 0.29.4
    dir=$(mktemp -d)
    cbindgen --quiet --config $crate/cbindgen.toml --output "$dir/fullview_table.h" $crate
    accepted "$dir/fullview_table.h" $crate/include/fullview_table.h
    cargo build --locked -p fullview-table-c
    built=${CARGO_TARGET_DIR:-target}/debug
    printf '198.18.0.0/15 192.0.2.1\n2001:2::/48 2001:db8::1\n' >"$dir/table.txt"
    local c=(gcc -std=c11 -Wall -Wextra -Werror -g -I $crate/include)
    local sanitizers=(-fsanitize=address,undefined -fno-sanitize-recover)
    # What rustc --print native-static-libs asks for.
    local static=("$built/libfullview_table_c.a" -lgcc_s -lutil -lrt -lpthread -lm -ldl -lc)
    local shared=(-L "$built" -lfullview_table_c -lpthread)
    local program
    for program in tests/check examples/lookup; do
        "${c[@]}" $crate/$program.c "${static[@]}" -o "$dir/static"
        "${c[@]}" $crate/$program.c "${shared[@]}" -o "$dir/shared"
        "${c[@]}" "${sanitizers[@]}" $crate/$program.c "${static[@]}" -o "$dir/sanitized"
        run_c_program "$dir" $program
    done
    rm -rf "$dir"
}

run_c_program() { # folder program
    local kind answer
    for kind in static shared sanitized; do
        answer=$(LD_LIBRARY_PATH=$built "$1/$kind" "$1/table.txt" 198.19.255.255 2001:2::1 10.0.0.1)
        echo "$2, $kind: ${answer//$'\n'/, }"
        [ "$2" = tests/check ] || [ "$answer" = "198.19.255.255 192.0.2.1
2001:2::1 2001:db8::1
10.0.0.1 has no route" ] || { echo "a wrong answer"; return 1; }
    done
}

smoke() {
    local experiment out
    cargo build --release --locked
    out=$(mktemp -d)
    "${CARGO_TARGET_DIR:-target}/release/fullview" table calibrate --smoke --output "$out/preferences.toml"
    for experiment in experiments/*.toml; do
        case $experiment in *peers*|*xdp*) continue ;; esac
        say "smoke: $experiment"
        "${CARGO_TARGET_DIR:-target}/release/fullview" bench "$experiment" --smoke --out "$out/$(basename "$experiment" .toml)"
    done
    rm -rf "$out"
}

# New inputs go to a directory of their own: the corpus in the tree stays as it is.
fuzz_target() { # target
    mkdir -p "$found/$1"
    if (cd fuzz && cargo +nightly fuzz run --release --sanitizer "$FUZZ_SANITIZER" "$1" "$found/$1" "corpus/$1" -- \
        -max_total_time="$FUZZ_SECONDS" -rss_limit_mb=4096 -verbosity=0) >"$found/$1.log" 2>&1; then
        echo "$1: ok, $FUZZ_SECONDS s"
    else
        cat "$found/$1.log"
        return 1
    fi
}


fuzz() {
    local found
    found=$(mktemp -d)
    cargo +nightly --version >/dev/null 2>&1 || { skip "no nightly toolchain for fuzzing"; return; }
    cargo_tool fuzz
    (cd fuzz && cargo +nightly fuzz build --release --sanitizer "$FUZZ_SANITIZER")
    # As many at once as there are processors: a target runs on one.
    export FUZZ_SECONDS FUZZ_SANITIZER found
    export -f fuzz_target
    (cd fuzz && cargo +nightly fuzz list) | xargs -P "$(nproc)" -I '{}' bash -c 'fuzz_target {}'
    rm -rf "$found"
}

peers_check() {
    peers/check.sh rust
    command -v go >/dev/null || { skip "no go: install Go 1.24 or newer"; return; }
    peers/check.sh go
}

# measure_peers COUNTERS EXPERIMENT...: runs them, then prints their tables with these counters.
measure_peers() {
    local fullview=${CARGO_TARGET_DIR:-target}/release/fullview table=${TABLE:-} counters=$1 dir experiment status flags=()
    shift
    cargo build --release --locked
    dir=$(mktemp -d)
    if [ "${PEERS_QUICK:-}" = 1 ]; then
        flags=(--runs 3 --seconds 0.05)
        # The routes alone: next hops are then those the experiment asks for.
        [ -n "$table" ] || {
            table=$dir/table.txt
            "$fullview" table synthesize --inet 90000 --inet6 16000 | cut -d ' ' -f 1 >"$table"
        }
    fi
    [ -z "$table" ] || flags+=(--table "$table")
    for experiment in "$@"; do
        # 3: some cell has no valid run, which is so where a peer answers wrongly. The table below shows it.
        status=0
        "$fullview" bench "experiments/$experiment.toml" --force "${flags[@]}" >/dev/null || status=$?
        [ $status = 0 ] || [ $status = 3 ] || return $status
    done
    for experiment in "$@"; do
        say "results/$experiment"
        "$fullview" report "results/$experiment" --overview "$counters" || [ $? = 3 ]
    done
    rm -rf "$dir"
}

peers() {
    install "${PEER_PACKAGES[@]}"
    command -v go >/dev/null || { echo "Go 1.24 or newer is needed for peers/go"; return 1; }
    measure_peers structure_bytes,build_ms peers peers6
    peers_forward
}

peers_forward() {
    local batch
    install "${PEER_PACKAGES[@]}"
    for batch in 32 256 memif; do
        peers/dpdk/l3fwd/build.sh $batch || { skip "l3fwd, which could not be built"; return; }
    done
    peers/dpdk/l3fwd/check.sh
    measure_peers all_pps,loop_pps peers-forward
    [ "$(nproc)" -gt 1 ] || { skip "l3fwd and ours over memif, which need two cores"; return; }
    cargo build --release --locked -p fullview-plane --example memif_router
    measure_peers core_share peers-memif
}

budget() {
    local files
    files=$(git ls-files '*.rs' | grep -v -e '^fuzz/' -e '/tests/' -e '^tests/' | xargs cat | grep -cve '^\s*$' || true)
    echo "lines of Rust outside tests/ and fuzz/, without blank ones: $files"
}

jobs=("$@")
[ ${#jobs[@]} -gt 0 ] || jobs=(packages fmt clippy doc deny budget test isa churn loom cless bpf soak api capi peers_check smoke fuzz)
took=()
for job in "${jobs[@]}"; do
    [ "$(type -t "$job")" = function ] || { echo "ci.sh: no job named $job; see the head of this file"; exit 2; }
    say "$job"
    started=$SECONDS
    "$job"
    took+=("$job $((SECONDS - started))")
    echo "-- $job: ok, $((SECONDS - started)) s"
done
say "seconds: ${took[*]/%/,} together $SECONDS"
