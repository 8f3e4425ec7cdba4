// Measures route lookups of Go libraries on one core, on the table and keys that fullview measures itself with.
// Formats, protocol and exit codes: peers/README.md.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The longest slice, in nanoseconds.
const longest = 60_000_000_000

// The costs of a structure.
type fact struct {
	Contestant string  `json:"contestant"`
	Bytes      uint64  `json:"bytes"`
	Seconds    float64 `json:"build_s"`
}

type listed struct {
	Stream string `json:"stream"`
	Family string `json:"family"`
}

// The line that the program prints when it has built and verified everything.
type ready struct {
	Ready       bool       `json:"ready"`
	Pages       string     `json:"pages"`
	Contestants []string   `json:"contestants"`
	Streams     []listed   `json:"streams"`
	Facts       []fact     `json:"facts"`
	Bad         []wrong    `json:"bad"`
	Refused     []struct{} `json:"refused"` // always empty: these libraries accept every table
}

type match struct {
	entries []entry
	streams []stream
	ready   ready
}

func main() {
	only := flag.String("only", "", "contestants, separated by commas; all of them by default")
	serve := flag.Bool("serve", false, "take commands from standard input")
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: go-lookup [-only CONTESTANT,...] [-serve] FOLDER") }
	flag.CommandLine.Init("go-lookup", flag.ContinueOnError)
	if flag.CommandLine.Parse(os.Args[1:]) != nil || flag.NArg() != 1 {
		flag.Usage()
		os.Exit(1)
	}
	chosen, err := choose(*only)
	exitOn(err, 1)
	runtime.LockOSThread()
	prepared, err := prepare(flag.Arg(0), chosen)
	exitOn(err, 2)
	// From here on the program allocates only a line of JSON per command, so no collection runs during a sample.
	debug.SetGCPercent(-1)
	print(prepared.ready)
	if *serve {
		prepared.serve()
	} else if len(prepared.ready.Bad) > 0 {
		os.Exit(3)
	}
}

func exitOn(err error, code int) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-lookup:", err)
		os.Exit(code)
	}
}

func choose(only string) ([]contestant, error) {
	if only == "" {
		return contestants, nil
	}
	var chosen []contestant
	for _, name := range strings.Split(only, ",") {
		at := slices.IndexFunc(contestants, func(c contestant) bool { return c.name+":1" == name })
		if at < 0 {
			return nil, fmt.Errorf("-only %s: no such contestant", name)
		}
		chosen = append(chosen, contestants[at])
	}
	return chosen, nil
}

func prepare(folder string, chosen []contestant) (*match, error) {
	// The ready line has all lists, the empty ones too.
	prepared := &match{ready: ready{
		Ready: true, Pages: pages(), Contestants: []string{}, Facts: []fact{}, Bad: []wrong{}, Refused: []struct{}{},
	}}
	for _, family := range []string{"inet", "inet6"} {
		if err := prepared.add(folder, family, chosen); err != nil {
			return nil, err
		}
	}
	if len(prepared.streams) == 0 {
		return nil, fmt.Errorf("%s: no key file", folder)
	}
	return prepared, nil
}

// Builds the contestants of a family, if it has keys, and verifies every answer.
func (m *match) add(folder, family string, chosen []contestant) error {
	streams, err := readStreams(folder, family)
	if err != nil || len(streams) == 0 {
		return err
	}
	routes, err := readRoutes(folder, family)
	if err != nil {
		return err
	}
	for _, one := range chosen {
		if one.family == family {
			m.take(one.take(routes), streams)
		}
	}
	for _, stream := range streams {
		m.ready.Streams = append(m.ready.Streams, listed{stream.name, family})
	}
	m.streams = append(m.streams, streams...)
	return nil
}

func (m *match) take(taken entry, streams []stream) {
	m.entries = append(m.entries, taken)
	m.ready.Contestants = append(m.ready.Contestants, taken.name)
	m.ready.Facts = append(m.ready.Facts, fact{taken.name, taken.bytes, taken.seconds})
	for _, stream := range streams {
		if bad := verify(taken, stream); bad != nil {
			m.ready.Bad = append(m.ready.Bad, *bad)
		}
	}
}

// Go does not request huge pages: it gets them where the kernel gives them to every program.
func pages() string {
	enabled, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err == nil && strings.Contains(string(enabled), "[always]") {
		return "THP"
	}
	return "4K"
}

// Answers one line per command until "quit" or the end of input.
func (m *match) serve() {
	input := bufio.NewScanner(os.Stdin)
	for number := 1; input.Scan() && input.Text() != "quit"; number++ {
		answer, err := m.obey(input.Text())
		if err != nil {
			print(map[string]string{"error": fmt.Sprintf("command %d: %s", number, err)})
		} else {
			print(answer)
		}
	}
}

func (m *match) obey(line string) (slice, error) {
	words := strings.Split(line, " ")
	if len(words) != 5 || words[0] != "slice" {
		return slice{}, fmt.Errorf("want: slice PEER:BATCH STREAM LEAD-IN LENGTH (in nanoseconds), or quit")
	}
	leadIn, leadInErr := strconv.ParseInt(words[3], 10, 64)
	length, err := strconv.ParseInt(words[4], 10, 64)
	if err != nil || leadInErr != nil || leadIn < 0 || leadIn > longest || length < 1 || length > longest {
		return slice{}, fmt.Errorf("a slice has 1 to %d nanoseconds, and its lead-in 0 to %d", longest, longest)
	}
	by := slices.IndexFunc(m.entries, func(e entry) bool { return e.name == words[1] })
	if by < 0 {
		return slice{}, fmt.Errorf("no such contestant; the ready line lists them")
	}
	family := m.entries[by].family
	on := slices.IndexFunc(m.streams, func(s stream) bool { return s.name == words[2] && s.family == family })
	if on < 0 {
		return slice{}, fmt.Errorf("no such stream of this contestant's family; the ready line lists them")
	}
	if slices.ContainsFunc(m.ready.Bad, func(b wrong) bool { return b.Contestant == words[1] && b.Stream == words[2] }) {
		return slice{}, fmt.Errorf("this contestant answers wrongly and is not timed")
	}
	if leadIn > 0 {
		timed(m.entries[by], &m.streams[on], time.Duration(leadIn))
	}
	return timed(m.entries[by], &m.streams[on], time.Duration(length)), nil
}

func print(line any) {
	text, err := json.Marshal(line)
	exitOn(err, 4)
	fmt.Println(string(text))
}
