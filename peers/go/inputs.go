package main

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A route of the table. peers/README.md describes this and the other files of the folder.
type route struct {
	prefix  netip.Prefix
	nextHop uint16
}

// A stream of keys of one family with the expected answers.
type stream struct {
	name, family string
	keys         []netip.Addr
	answers      []uint16
	at      int // the key that the next slice begins with
}

// The routes of one family.
func readRoutes(folder, family string) ([]route, error) {
	path := filepath.Join(folder, "table.txt")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var routes []route
	for number, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if strings.Contains(line, ":") != (family == "inet6") {
			continue
		}
		parsed, err := parseRoute(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number+1, err)
		}
		routes = append(routes, parsed)
	}
	return routes, nil
}

func parseRoute(line string) (route, error) {
	text, hop, found := strings.Cut(line, " ")
	prefix, err := netip.ParsePrefix(text)
	if !found || err != nil || prefix != prefix.Masked() {
		return route{}, fmt.Errorf("%q: want PREFIX NEXT-HOP, without bits beyond the length", line)
	}
	nextHop, err := strconv.ParseUint(hop, 10, 16)
	if err != nil || nextHop == 0 {
		return route{}, fmt.Errorf("%q: want a next hop of 1 to 65535", hop)
	}
	return route{prefix, uint16(nextHop)}, nil
}

// The streams of one family, by name.
func readStreams(folder, family string) ([]stream, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*."+family+".keys"))
	if err != nil {
		return nil, err
	}
	var streams []stream
	for _, path := range paths {
		read, err := readStream(strings.TrimSuffix(path, ".keys"), family)
		if err != nil {
			return nil, err
		}
		streams = append(streams, read)
	}
	return streams, nil
}

func readStream(path, family string) (stream, error) {
	keys, err := os.ReadFile(path + ".keys")
	if err != nil {
		return stream{}, err
	}
	answers, err := os.ReadFile(path + ".answers")
	if err != nil {
		return stream{}, err
	}
	read := stream{name: strings.TrimSuffix(filepath.Base(path), "."+family), family: family}
	size := 4
	if family == "inet6" {
		size = 16
	}
	if len(keys) == 0 || len(keys)%size != 0 || len(answers) != len(keys)/size*2 {
		return stream{}, fmt.Errorf("%s: %d bytes of keys, %d of answers: empty or truncated", path, len(keys), len(answers))
	}
	for at := 0; at < len(keys); at += size {
		read.keys = append(read.keys, address(keys[at:at+size]))
	}
	for at := 0; at < len(answers); at += 2 {
		read.answers = append(read.answers, binary.LittleEndian.Uint16(answers[at:]))
	}
	return read, nil
}

// IPv4 keys are little-endian integers, IPv6 keys are in network order.
func address(key []byte) netip.Addr {
	if len(key) == 16 {
		return netip.AddrFrom16([16]byte(key))
	}
	var bytes [4]byte
	binary.BigEndian.PutUint32(bytes[:], binary.LittleEndian.Uint32(key))
	return netip.AddrFrom4(bytes)
}
