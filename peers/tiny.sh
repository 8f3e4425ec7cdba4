# The checks source this file: it makes a correct input folder with a table of eight routes, $input below $scratch.

# bytes HEX...: writes the bytes that the arguments name in hexadecimal digits, one argument after the other.
bytes() {
	local digits="$*"
	digits=${digits// /}
	printf "$(sed 's/../\\x&/g' <<<"$digits")"
}

# Makes a new, correct input folder and puts its path into $input.
fresh_input() {
	input=$scratch/input
	rm -rf "$input"
	mkdir "$input"
	cat >"$input/table.txt" <<-TABLE
		10.0.0.0/8 1
		10.1.2.128/25 4
		10.1.0.0/16 2
		10.1.2.0/24 3
		10.1.2.255/32 32767
		2001:db8::/32 5
		2001:db8:1::/48 6
		2001:db8:1::7/128 9
	TABLE
	# 10.0.0.1, 10.1.9.1, 10.1.2.3, 10.1.2.200, 10.1.2.255, 11.0.0.0
	bytes 0100000a 0109010a 0302010a c802010a ff02010a 0000000b >"$input/s.inet.keys"
	bytes 0100 0200 0300 0400 ff7f 0000 >"$input/s.inet.answers"
	# 2001:db8::1, 2001:db8:1::1, 2001:db8:1::7, ::
	bytes 20010db8000000000000000000000001 20010db8000100000000000000000001 \
		20010db8000100000000000000000007 00000000000000000000000000000000 >"$input/s.inet6.keys"
	bytes 0500 0600 0900 0000 >"$input/s.inet6.answers"
}

# The same for routers, with a port for each next hop.
fresh_ports() {
	fresh_input
	sed -i 's/ 32767$/ 7/' "$input/table.txt"
	bytes 0100 0200 0300 0400 0700 0000 >"$input/s.inet.answers"
}
