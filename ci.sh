#!/usr/bin/env bash
# Every check of the project. Each job is a function that also runs alone: ./ci.sh JOB... runs these, ./ci.sh runs all
# but the last two, some of them at once (every_job).
#
# What a run changes on the machine: as root it installs Debian packages with apt-get (the lists below), without starting
# their daemons. It builds cargo tools once for all checkouts, into fullview-tools in the user's cache folder, and everything
# else below target/, fuzz/target/ and peers/build/: some 10 GB. Tests make network namespaces and links of their own and
# delete them; `peers` reserves huge pages and returns them. With CI=true rustup adds the standard library of aarch64 to the
# toolchain. Cargo and Go download what they lack into their caches. Temporary files are below /tmp.
#
# The seconds are estimates of each job alone on a fresh machine with two cores; the end of a run prints its own.
#
#   job         s    what it does
#   packages    60   installs the Debian packages that the jobs need (without root: names those that are missing), and the
#                    Python package MLRsearch
#   tools       130  builds the cargo tools, each in a fixed version: cargo-deny, cargo-public-api, cbindgen
#   fmt         2    formatting
#   imports     20   no circle of imports between modules, no dependency upwards between crates (crates/housekeeping)
#   types       1    each type name means one thing in its crate; the `impl` blocks of a type stand in at most three files
#   functions   1    how long functions are
#   features    1    that the programs and their tests are built from the same dependencies, so that neither replaces the other
#   clippy      100  lints with and without the feature `bpf`, in a build in which every call of a C compiler fails
#   doc         25   links and warnings of the documentation
#   deny        5    licenses, sources, banned crates and known vulnerabilities of the dependencies
#   budget      1    counts the lines of Rust
#   test        1300 the tests in namespaces with the feature `bpf` (root; without clang: without it): programs in the kernel,
#                    ports, the router, BIRD, FRR and keepalived beside it, and what measures devices and algorithms
#   units       350  all other tests with the feature `bpf`: unit, property, conformance, bgpdump and ministat tests; the lab on
#                    simulated machines, FULLVIEW_CAMPAIGNS campaigns of each kind (default 150; bounds on each machine need
#                    thousands, and 2000 are too few for one of them)
#   plain       240  the unit tests, the router in namespaces and what the command line says of builds, without the feature
#                    `bpf` (root)
#   soak        70   three routers under load and churn for FULLVIEW_SOAK seconds (default 60; root)
#   churn       40   FULLVIEW_CHURN changes (default 500000) to every table that can be patched, while readers check
#                    every answer
#   isa         140  that the tests covered every instruction set of this processor; the code without vectors; that the
#                    workspace compiles for aarch64
#   loom        80   every interleaving of how tables are published, how their memory is reused, and how workers wake each other
#   api         20   that the public interface of fullview-table is crates/table/public-api.txt (ACCEPT=1 renews it)
#   capi        10   the C interface: header (ACCEPT=1 renews it), library, example and checks in C, with sanitizers
#   peers_check 100  that the Rust, Go and C programs measured beside ours build and answer a small table correctly, the C
#                    programs under sanitizers
#   smoke       260  a calibration and every experiment once, short; fails when a packet was misrouted or a sample is missing
#   fuzz        290  every fuzz target for FUZZ_SECONDS (default 5), as many at once as there are processors
#
#   peers            measures every algorithm beside DPDK and other libraries, and our forwarding beside DPDK's l3fwd, which
#                    it builds from Debian's source package; on the table in TABLE, else on a synthetic one (15 minutes;
#                    with PEERS_QUICK=1 a few)
#   peers_forward    the part of it about l3fwd
set -euo pipefail
cd "$(dirname "$0")"
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-always}
CI=${CI:-false}
# CI builds once, so it needs no incremental data. What it builds in the release profile measures nothing, so that needs neither
# LTO nor debug information, and takes less time to run than a better optimized program takes to compile.
[ "$CI" != true ] || export CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_DEBUG=none CARGO_PROFILE_RELEASE_LTO=off \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1
# Tests in namespaces wait for packets and clocks half of their time, so more of them than processors run at once.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}
# Every target starts from the valid inputs in fuzz/corpus, so it reaches the parsers' inner branches at once, and a short
# search is enough for each run of CI; set more seconds after a change to a parser.
FUZZ_SECONDS=${FUZZ_SECONDS:-5}

target=${CARGO_TARGET_DIR:-target}
[ "${target#/}" != "$target" ] || target=$PWD/$target

PACKAGES=(bird2 bgpdump ministat frr keepalived iproute2 ethtool iperf3 curl iputils-ping nftables iptables openssh-client openssh-server dpdk-dev clang llvm libbpf-dev gcc g++ libc6-dev linux-perf python3-venv)
PEER_PACKAGES=(libdpdk-dev pkg-config gcc make xz-utils)
# A fixed version, because another one may write the committed files differently.
TOOLS=(cargo-deny@0.20.2 cargo-public-api@0.52.0 cbindgen@0.29.4)
# They take longer to build than anything of ours, so all checkouts share them. They come first in PATH.
tools_at=${XDG_CACHE_HOME:-${HOME:-$target}/.cache}/fullview-tools
for tool in "${TOOLS[@]}"; do PATH=$tools_at/$tool/bin:$PATH; done
# The version of the published MLRsearch, which a test of the lab compares with.
MLRSEARCH=1.2.1

# The names in the tree that jobs depend on. All builds of tests choose the whole workspace: with other packages Cargo may
# choose other features of the dependencies, and compile everything a second time.
WITH_BPF=(--workspace --features bpf)   # the packages that have this feature
TABLE_CRATE=fullview-table
PLANE_CRATE=fullview-plane
PLAIN_TESTS=(--workspace --lib --bins --test router --test oracle)   # the tests that this feature changes
# Those of `test`. They send packets or measure rates, and wait half of their time: nothing should hold them up.
PACKET_TESTS=(cli engine oracle peers ports rates reports router testbed veth)
PLAIN_TESTS_OF_CLI=(--workspace --test cli builds::)   # and those of the command line
SOAK_TESTS=(--test router)
CONFORMANCE_TESTS=(--test conformance)
READER_TESTS=(--test readers)
LOOM_TESTS=(--test loom_publish)
# Two other jobs cover these: peers_check runs their programs, and measuring takes what `peers` installs.
EXPERIMENTS_OF_PEERS='peers*'
EXPERIMENTS_IN_KERNEL='xdp*'
EXPERIMENTS_OF_CLIENTS='veth*'
# The others differ from it in numbers; the one with a full view takes minutes to load it.
EXPERIMENTS_OF_DEVICES=experiments/testbed/report-000.toml

say() { printf '\n== %s\n' "$*"; }

# Something is not done that could be done after an installation: a printed reason for a user, a failure in CI.
skip() {
    echo "skipped: $*"
    [ "$CI" != true ] || { echo "in CI nothing may be skipped"; return 1; }
}

# Something is not done because it is impossible here. The caller has tried it, and passes what the attempt printed.
cannot() { # what, evidence
    printf 'impossible here: %s. The attempt said:\n%s\n' "$1" "$(sed 's/^/    /' <<<"$2")"
}

# Whether a failed download failed because of the network.
network_failed() { # what the attempt printed
    grep -qiE 'could not resolve|resolve host|dns error|failed to lookup|connect|network is unreachable|timed out|timeout|could not download|forbidden' <<<"$1"
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

# Builds a tool unless this version is there. Tools run for seconds: compiled quickly is better than fast.
tool() { # name
    local entry name=$1
    for entry in "${TOOLS[@]}"; do
        [ "${entry%@*}" = "$name" ] || continue
        [ ! -e "$tools_at/$entry/bin/$name" ] || return 0
        CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=64 \
            CARGO_PROFILE_RELEASE_DEBUG=none CARGO_TARGET_DIR=$target/tools/build \
            nice cargo install --quiet --locked --root "$tools_at/$entry" "$entry" || return 1
    done
}

tools() {
    local entry
    for entry in "${TOOLS[@]}"; do
        tool "${entry%@*}"
    done
}

# A Python package in an environment of its own.
mlrsearch() {
    local said folder=$target/tools/mlrsearch-$MLRSEARCH
    [ ! -e "$folder/done" ] || return 0
    rm -rf "$folder"
    if said=$(python3 -m venv "$folder" && "$folder/bin/pip" install --quiet --no-deps "MLRsearch==$MLRSEARCH" 2>&1); then
        touch "$folder/done"
    else
        skip "MLRsearch $MLRSEARCH for Python was not installed: $said"
    fi
}

# Compares what was made with what is committed; a difference that is meant is accepted with ACCEPT=1.
accepted() { # made committed
    if [ "${ACCEPT:-}" = 1 ]; then
        cp "$1" "$2"
    elif ! diff -u "$2" "$1"; then
        echo "$2 does not fit the code. If the change is intended: ACCEPT=1 ./ci.sh $job, and commit the file"
        return 1
    fi
}

packages() {
    install "${PACKAGES[@]}" "${PEER_PACKAGES[@]}"
    mlrsearch
}

fmt() {
    local manifest
    for manifest in Cargo.toml fuzz/Cargo.toml peers/fullview/Cargo.toml peers/rust/Cargo.toml; do
        cargo fmt --all --check --manifest-path $manifest
    done
}

housekeeping() { cargo run --quiet --locked -p fullview-housekeeping -- "$@"; }

# The tests of the checks come first: a check that finds nothing anywhere proves nothing.
imports() {
    cargo test --quiet --locked -p fullview-housekeeping
    housekeeping imports
}
types() { housekeeping types; }
functions() { housekeeping functions; }

features() {
    local selected folder
    mapfile -t selected < <(selection)
    folder=$(mktemp -d)
    features_of normal,build >"$folder/programs"
    features_of normal,build,dev >"$folder/tests"
    if comm -23 "$folder/programs" "$folder/tests" | grep .; then
        echo "tests have these with other features: see the unused dependencies in crates/housekeeping/Cargo.toml"
        return 1
    fi
    rm -rf "$folder"
}

features_of() { # kinds of dependencies
    cargo tree --color never --locked "${selected[@]}" --edges "$1" --prefix none --format '{p} [{f}]' | sed 's/ (\*)$//' | sort -u
}

# cc and friends are hidden behind names that fail; only the linker that rustc calls stays. The folder is of this job, of `doc`
# and of `api` alone: build scripts that ran elsewhere would not run again.
without_c() { # cargo arguments...
    local fail=$target/checked/no-c-compiler
    mkdir -p "$target/checked"
    printf '#!/bin/sh\necho "a C compiler was called: $*" >&2\nexit 1\n' >"$fail"
    chmod +x "$fail"
    CC=$fail CXX=$fail HOST_CC=$fail TARGET_CC=$fail CARGO_TARGET_DIR=$target/checked cargo "$@"
}

has_clang() { command -v "${CLANG:-clang}" >/dev/null; }
no_clang() { skip "$1 with the feature bpf: install clang and libbpf-dev"; }

# Without the feature: what `plain` tests.
clippy() {
    local selected
    mapfile -t selected < <(selection)
    without_c clippy --locked "${selected[@]}" --all-targets -- -D warnings
    has_clang || { no_clang "lints"; return; }
    without_c clippy --locked "${PLAIN_TESTS[@]}" --test cli -- -D warnings
}

doc() {
    local selected
    mapfile -t selected < <(selection)
    RUSTDOCFLAGS="-D warnings" without_c doc --locked "${selected[@]}" --no-deps
    has_clang || no_clang "documentation"
}

deny() {
    local said
    tool cargo-deny
    cargo deny --locked check bans licenses sources
    if said=$(cargo deny --locked check advisories 2>&1); then
        echo "$said"
    elif grep -q 'failed to fetch advisory database' <<<"$said" && network_failed "$said"; then
        cannot "fetching the database of known vulnerabilities" "$said"
    else
        echo "$said"
        return 1
    fi
}

# Which packages with which features: the same for every job, so that one build serves them all.
selection() {
    if has_clang; then printf '%s\n' "${WITH_BPF[@]}"; else echo --workspace; fi
}

tested() { # cargo arguments...
    local selected
    mapfile -t selected < <(selection)
    cargo test --locked --no-fail-fast "${selected[@]}" "$@"
}

# Runs a command that tests, and up to three tests that failed once more, one after the other: the many programs of tests that
# run at once may starve one of them on two processors. The end of a run names the tests that passed only alone.
again_alone() { # command...
    local log failed passed
    log=$(mktemp)
    if "$@" 2>&1 | tee "$log"; then
        rm -f "$log"
        return
    fi
    mapfile -t failed < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log" | sort -u)
    [ ${#failed[@]} -gt 0 ] && [ ${#failed[@]} -le 3 ] || return 1
    # A program of tests that crashed has no result.
    [ "$(grep -c 'failed, to rerun pass' "$log")" = "$(grep -c '^test result: FAILED' "$log")" ] || return 1
    say "once more, alone: ${failed[*]}"
    "$@" -- --test-threads 1 --exact "${failed[@]}" 2>&1 | tee "$log" || return 1
    passed=$(grep -cE '^test .* \.\.\. ok$' "$log" || true)
    rm -f "$log"
    [ "$passed" -ge ${#failed[@]} ] || { echo "$passed of ${#failed[@]} ran"; return 1; }
    printf '%s\n' "${failed[@]}" >>"$passed_alone"
}

# The names of all programs of tests.
test_programs() {
    cargo metadata --locked --no-deps --format-version 1 | grep -o '"kind":\["test"\],"crate_types":\["bin"\],"name":"[^"]*"' |
        sed 's/.*:"//; s/"//' | sort -u
}

# What was not tested without root or clang.
untested_here() {
    [ "$(id -u)" = 0 ] || skip "the tests in network namespaces: run as root"
    has_clang || no_clang "tests"
}

test() {
    local programs
    mapfile -t programs < <(printf -- '--test\n%s\n' "${PACKET_TESTS[@]}")
    again_alone tested "${programs[@]}"
    untested_here
}

units() {
    local others programs
    mlrsearch
    others=$(test_programs | grep -vxFf <(printf '%s\n' "${PACKET_TESTS[@]}"))
    mapfile -t programs < <(sed 's/^/--test\n/' <<<"$others")
    # Examples have no tests; `clippy` compiles them.
    again_alone tested --lib --bins "${programs[@]}"
    tested --doc
    untested_here
}

# Without the feature the router shares its interfaces with the kernel in another way.
# So its unit tests are tested without it too, and what the command line says about it.
plain() {
    again_alone tested_plainly
    again_alone cargo test --locked "${PLAIN_TESTS_OF_CLI[@]}"
}

tested_plainly() { # arguments of the tests...
    cargo test --locked --no-fail-fast "${PLAIN_TESTS[@]}" "$@"
}

# The conformance tests force each instruction set the library finds; what the processor has must be among them.
isa() {
    local isa forced flag said
    said=$(tested "${CONFORMANCE_TESTS[@]}" -- --nocapture batches_inet) || { echo "$said"; return 1; }
    echo "$said"
    forced=$(sed -n 's/.*instruction sets forced: //p' <<<"$said")
    [ -n "$forced" ] || { echo "the conformance tests do not print which instruction sets they forced"; return 1; }
    for isa in avx2 avx512; do
        flag=$isa
        [ $isa = avx2 ] || flag=avx512bw
        grep -qw "$flag" /proc/cpuinfo || { cannot "testing $isa" "$(grep -m1 '^flags' /proc/cpuinfo)"; continue; }
        grep -qw "$isa" <<<"$forced" || { echo "this processor has $isa, but it was not tested"; return 1; }
    done
    say "isa: without any vectors, as on other processors"
    without_vectors
    say "isa: aarch64"
    aarch64
}

without_vectors() {
    ours_with fullview_portable test --locked -p "$TABLE_CRATE" --lib "${CONFORMANCE_TESTS[@]}"
}

# Runs cargo with a cfg for our packages alone, by a wrapper of the compiler, so that the dependencies are those of other jobs.
ours_with() { # cfg, arguments of cargo...
    local wrapper=$target/with-$1
    printf '#!/bin/sh\nexec "$@" --cfg %s\n' "$1" >"$wrapper"
    chmod +x "$wrapper"
    shift
    RUSTC_WORKSPACE_WRAPPER=$wrapper cargo "$@"
}

aarch64() {
    local said triple=aarch64-unknown-linux-gnu
    if ! rustup target list --installed 2>/dev/null | grep -q $triple; then
        [ "$CI" = true ] || { skip "compiling for aarch64: rustup target add $triple"; return; }
        if ! said=$(rustup target add $triple 2>&1); then
            network_failed "$said" || { echo "$said"; return 1; }
            cannot "compiling for aarch64, whose standard library cannot be fetched" "$said"
            return
        fi
    fi
    cargo check --locked --workspace --target $triple
}

churn() { FULLVIEW_CHURN=${FULLVIEW_CHURN:-500000} tested "${READER_TESTS[@]}" -- --nocapture; }

loom() {
    # The code itself, and models of the parts that use atomics which loom has not. All of it runs for a second, less than optimizing
    # it takes.
    local unoptimized=(--config "profile.dev.package.$TABLE_CRATE.opt-level=0")
    ours_with loom test --locked "${unoptimized[@]}" -p "$TABLE_CRATE" --features loom --lib "${LOOM_TESTS[@]}" interleavings
    ours_with loom test --locked "${unoptimized[@]}" -p "$PLANE_CRATE" --features loom --lib interleavings
}

# Three ways to forward at once, each beside its own neighbours.
soak() {
    has_clang || { no_clang "the soak"; return; }
    FULLVIEW_SOAK=${FULLVIEW_SOAK:-60} tested "${SOAK_TESTS[@]}" -- --nocapture soak::
}

# Without the impls that every type has and the derived ones. The tool reads rustdoc's JSON, which is unstable in form
# only: the bootstrap variable lets the stable rustdoc write it, so that the text does not depend on the date of a
# nightly. The compiler does not get it: build scripts would run again, and `clippy` and `doc` build in the same folder.
api() {
    local made rustdoc=$target/checked/rustdoc-with-json
    tool cargo-public-api
    made=$(mktemp)
    mkdir -p "$target/checked"
    printf '#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc "$@"\n' >"$rustdoc"
    chmod +x "$rustdoc"
    RUSTDOC=$rustdoc without_c +stable public-api -p "$TABLE_CRATE" -sss --color never >"$made"
    accepted "$made" crates/table/public-api.txt
    rm -f "$made"
}

# From the dev profile: its assertions and overflow checks are on. The flags of C are those a careful user would set.
capi() {
    local dir built selected crate=crates/table-c
    command -v gcc >/dev/null || { skip "the C interface: install gcc and libc6-dev"; return; }
    tool cbindgen
    dir=$(mktemp -d)
    cbindgen --quiet --config $crate/cbindgen.toml --output "$dir/fullview_table.h" $crate
    accepted "$dir/fullview_table.h" $crate/include/fullview_table.h
    mapfile -t selected < <(selection)
    cargo build --locked "${selected[@]}" --lib
    built=$target/debug
    printf '198.18.0.0/15 192.0.2.1\n2001:2::/48 2001:db8::1\n' >"$dir/table.txt"
    local c=(gcc -std=c11 -Wall -Wextra -Werror -g -I $crate/include)
    local sanitizers=(-fsanitize=address,undefined -fno-sanitize-recover)
    # What rustc --print native-static-libs prints.
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

# The build of the tests: nothing is measured here. `plain` may replace the program while it runs.
smoke() {
    local experiment selected
    mapfile -t selected < <(selection)
    cargo build --locked "${selected[@]}" --bins
    out=$(mktemp -d)
    cp "$target/debug/fullview" "$out/fullview"
    "$out/fullview" table calibrate --smoke --output "$out/preferences.toml"
    [ -s "$out/preferences.toml" ] || { echo "the calibration wrote nothing"; return 1; }
    for experiment in experiments/*.toml; do
        # shellcheck disable=SC2254
        case ${experiment##*/} in
        $EXPERIMENTS_OF_PEERS) echo "not run here: $experiment; peers_check tests its programs, ./ci.sh peers runs it" ;;
        $EXPERIMENTS_OF_CLIENTS) echo "not run here: $experiment; tests/veth.rs runs a short version, since iperf3 needs seconds" ;;
        $EXPERIMENTS_IN_KERNEL) smoke_in_kernel "$experiment" ;;
        *) smoke_one "$experiment" ;;
        esac
    done
    for experiment in $EXPERIMENTS_OF_DEVICES; do
        command -v nft ethtool chrt >/dev/null || { skip "$experiment: install nftables, ethtool and util-linux"; continue; }
        smoke_in_kernel "$experiment"
    done
    rm -rf "$out"
}

smoke_in_kernel() { # experiment
    has_clang || { no_clang "$1"; return; }
    [ "$(id -u)" = 0 ] || { skip "$1: run as root"; return; }
    smoke_one "$1"
}

# A short panel may be too noisy to count, but what came out must be right, and every variant must have had its turns.
smoke_one() { # experiment
    local folder wrong members
    folder=$out/$(basename "$1" .toml)
    say "smoke: $1"
    "$out/fullview" bench "$1" --smoke --out "$folder"
    [ -s "$folder/panels.jsonl" ] || { echo "$1: no panel is recorded"; return 1; }
    if wrong=$(grep -E '"validity":\[[^]]*"(misrouted|wrong_flows|refused|interrupted|link_event)"|"set_aside"' "$folder/panels.jsonl"); then
        printf '%s: what came out is wrong:\n%s\n' "$1" "$wrong"
        return 1
    fi
    if wrong=$(grep -vE '"rounds":[1-9]' "$folder/panels.jsonl"); then
        printf '%s: panels without a round:\n%s\n' "$1" "$wrong"
        return 1
    fi
    members=$(grep -oE '"variant":' "$folder/panels.jsonl" | wc -l)
    echo "$1: $(wc -l <"$folder/panels.jsonl") panels of $members members, all of them right"
}

# New inputs go to a directory of their own: the corpus in the tree stays as it is.
fuzz_target() { # target
    mkdir -p "$found/$1"
    if "$found/bin/debug/$1" "$found/$1" "fuzz/corpus/$1" -artifact_prefix="$found/$1-" \
        -max_total_time="$FUZZ_SECONDS" -rss_limit_mb=4096 -verbosity=0 >"$found/$1.log" 2>&1; then
        echo "$1: ok, $FUZZ_SECONDS s"
    else
        cat "$found/$1.log"
        return 1
    fi
}

# What cargo-fuzz does, but only our crates and the reader of MRT are instrumented and optimized; all else is compiled as for
# tests. Panics and wrong answers show without a sanitizer, so the stable compiler is enough. `cargo +nightly fuzz run TARGET`
# adds the address sanitizer. The folder is of this job alone, since Cargo does not see that another build has no wrapper.
fuzz_build() {
    local wrapper=$target/instrumented flags="-Cpasses=sancov-module --cfg fuzzing" level=1 pass
    # For the short search of CI, optimizing the largest crates takes longer than it saves.
    [ "$CI" != true ] || level=0
    for pass in level=4 inline-8bit-counters pc-table trace-compares; do
        flags+=" -Cllvm-args=-sanitizer-coverage-$pass"
    done
    mkdir -p "$target"
    cat >"$wrapper" <<END
#!/bin/sh
case " \$* " in
*" --crate-name fullview_table "* | *" --crate-name fullview_filter "* | *" --crate-name fullview_plane "*) exec "\$@" -Copt-level=1 $flags ;;
*" --crate-name fullview_"* | *" --crate-name bgpkit_parser "* | *" fuzz_targets/"*) exec "\$@" -Copt-level=$level $flags ;;
*) exec "\$@" ;;
esac
END
    chmod +x "$wrapper"
    (cd fuzz && RUSTC_WRAPPER=$wrapper CARGO_TARGET_DIR=target/instrumented cargo build --locked --bins)
}

fuzz() {
    local found targets
    fuzz_build
    found=$(mktemp -d)
    ln -s "$PWD/fuzz/target/instrumented" "$found/bin"
    mapfile -t targets < <(sed -n 's|^path = "fuzz_targets/\(.*\)\.rs"|\1|p' fuzz/Cargo.toml)
    [ ${#targets[@]} -gt 0 ] || { echo "fuzz/Cargo.toml names no target"; return 1; }
    # As many at once as there are processors, because a target uses one.
    export FUZZ_SECONDS found
    export -f fuzz_target
    printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I '{}' bash -c 'fuzz_target {}'
    rm -rf "$found"
}

# The routing tables of other languages, and DPDK's under the address and undefined-behaviour sanitizers.
peers_check() {
    local package
    peers/check.sh rust
    if command -v go >/dev/null; then
        peers/check.sh go
    else
        skip "peers/go: install Go 1.24 or newer"
    fi
    peers/bed/check.sh
    package=$(missing "${PEER_PACKAGES[@]}")
    [ -z "$package" ] || { skip "peers/dpdk under sanitizers: install" $package; return; }
    peers/dpdk/check.sh
}

# measure_peers COUNTERS EXPERIMENT...: runs them, then prints their tables with these counters.
measure_peers() {
    local fullview=$target/release/fullview table=${TABLE:-} counters=$1 dir experiment status flags=()
    shift
    cargo build --release --locked
    dir=$(mktemp -d)
    if [ "${PEERS_QUICK:-}" = 1 ]; then
        flags=(--runs 3 --seconds 0.05)
        # Only the routes: the experiment then chooses the next hops.
        [ -n "$table" ] || {
            table=$dir/table.txt
            "$fullview" table synthesize --inet 90000 --inet6 16000 | cut -d ' ' -f 1 >"$table"
        }
    fi
    [ -z "$table" ] || flags+=(--table "$table")
    for experiment in "$@"; do
        # 3: some cell has no valid run, because a peer answers wrongly. The table below shows it.
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
    command -v go >/dev/null || { echo "peers/go: install Go 1.24 or newer"; return 1; }
    measure_peers structure_bytes,build_ms peers peers6
    peers_forward
}

peers_forward() {
    local kind
    install "${PEER_PACKAGES[@]}"
    for kind in 32 256 memif-32 memif-256; do
        peers/dpdk/l3fwd/build.sh $kind || { skip "l3fwd: it could not be built, see above"; return; }
    done
    peers/fullview/build.sh
    peers/dpdk/l3fwd/check.sh
    measure_peers received,lost peers-forward-32 peers-forward-256
    [ "$(nproc)" -gt 1 ] || { skip "l3fwd and ours over memif: they need two cores"; return; }
    peers/dpdk/memif/check.sh
    measure_peers received,lost peers-memif
}

budget() {
    local files
    files=$(git ls-files '*.rs' | grep -v -e '^fuzz/' -e '/tests/' -e '^tests/' | xargs cat | grep -cve '^\s*$' || true)
    echo "lines of Rust outside tests/ and fuzz/, without blank ones: $files"
}

# run JOB: prints what it does, how long it took and the seconds of processors it used, and ends the script when it fails.
run() {
    local TIMEFORMAT="-- $1: %0R s, of processors %0U s and in the kernel %0S s"
    job=$1
    [ "$(type -t "$job")" = function ] || { echo "ci.sh: no job named $job; see the head of this file"; exit 2; }
    say "$job"
    time "$job"
    echo "-- $job: ok"
}

# lane JOB...: one job after the other, and then those that no lane has begun, until one fails in any lane. Each prints at its
# end. A job runs in the background because the shell would ignore its failing commands on the left of `||`.
lane() {
    local each ended=0
    while each=${1:-$(next_job)} && [ -n "$each" ]; do
        [ $# = 0 ] || shift
        [ ! -e "$lanes/failed" ] || return 1
        (run "$each") >"$lanes/$each.log" 2>&1 &
        wait $! || ended=$?
        flock "$lanes" cat "$lanes/$each.log"
        [ $ended = 0 ] || { touch "$lanes/failed"; return $ended; }
    done
}

# The first of the jobs that no lane has begun; nothing if there is none.
next_job() {
    flock "$lanes" sh -c 'head -n 1 "$1" && sed -i 1d "$1"' - "$lanes/left"
}

# What decides soonest, then two lanes at once. The tests of routers, in one lane, wait for packets part of the time, and leave the
# processors to the other lane, which gives way to them. Where two jobs write to one folder of builds, cargo lets one wait for the
# other. `smoke` comes first, because `plain` builds the program anew; then the longest ones, so that both lanes end at about the
# same time.
every_job() {
    local each tests builds ended=0
    local others=(smoke units tools fuzz peers_check clippy loom isa doc api churn deny capi)
    for each in packages fmt imports types functions features budget; do run "$each"; done
    lanes=$(mktemp -d)
    printf '%s\n' "${others[@]}" >"$lanes/left"
    (lane test soak plain) &
    tests=$!
    (renice -n 10 $BASHPID >/dev/null; lane) &
    builds=$!
    wait $tests || ended=$?
    wait $builds || ended=$?
    # What prevents a lane from finding the next job must not look like success.
    [ $ended != 0 ] || [ ! -s "$lanes/left" ] || { echo "no lane began: $(paste -sd ' ' "$lanes/left")"; ended=1; }
    rm -rf "$lanes"
    return $ended
}

passed_alone=$(mktemp)
trap 'rm -f "$passed_alone"' EXIT
if [ $# -gt 0 ]; then
    for entry in "$@"; do run "$entry"; done
else
    every_job
fi
[ ! -s "$passed_alone" ] || say "failed beside other tests and passed alone: $(paste -sd ' ' "$passed_alone")"
say "seconds: $SECONDS"
