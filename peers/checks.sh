# The checks source this file: it makes $scratch, which goes as they end, and counts what fails.

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
. "$(dirname "${BASH_SOURCE[0]}")/tiny.sh"

# judge CODE PATTERN NAME STATUS OUTPUT: whether a program ended with this code, and printed a line with the pattern.
judge() {
	local code=$1 pattern=$2 name=$3 status=$4 output=$5
	if ((status == code)) && grep -q -- "$pattern" <<<"$output"; then
		echo "ok      $name"
	else
		echo "FAILED  $name: exit $status, want $code and a line with: $pattern"
		sed 's/^/        /' <<<"$output"
		failures=$((failures + 1))
	fi
}

# The last command of a check.
conclude() {
	((failures == 0)) || { echo "$failures failed" >&2; exit 1; }
}
