package main

import (
	"fmt"
	"syscall"
	"time"
)

const (
	segment = 65536 // keys between two readings of the clock, as in the other peers
	room    = 256   // answers are written to a buffer that stays in the first-level cache
)

// The wrong answers of a contestant on a stream.
type wrong struct {
	Contestant string `json:"contestant"`
	Family     string `json:"family"`
	Stream     string `json:"stream"`
	Bad        int    `json:"bad"`
	Of         int    `json:"of"`
	First      string `json:"first"`
}

// Compares every answer; returns nil if all are correct.
func verify(by entry, on stream) *wrong {
	answers := make([]uint16, len(on.keys))
	by.lookUp(on.keys, answers)
	found := wrong{Contestant: by.name, Family: on.family, Stream: on.name, Of: len(on.keys)}
	for i, answer := range answers {
		if answer == on.answers[i] {
			continue
		}
		if found.Bad == 0 {
			found.First = fmt.Sprintf("%s: expected %d, answered %d", on.keys[i], on.answers[i], answer)
		}
		found.Bad++
	}
	if found.Bad == 0 {
		return nil
	}
	return &found
}

// Million lookups per second, and the share of the time during which this thread had the core.
func timed(by entry, on stream, seconds float64) (mlps, onCPU float64) {
	var answers [room]uint16
	length := time.Duration(seconds * float64(time.Second))
	ran, started, done := onCore(), time.Now(), 0
	for at := 0; time.Since(started) < length; at %= len(on.keys) {
		end := min(at+segment, len(on.keys))
		for from := at; from < end; from += room {
			by.lookUp(on.keys[from:min(from+room, end)], answers[:])
		}
		done += end - at
		at = end
	}
	elapsed := time.Since(started).Seconds()
	return float64(done) / elapsed * 1e-6, min((onCore()-ran)/elapsed, 1)
}

// The seconds during which this thread has had a core; the caller is locked to its thread.
func onCore() float64 {
	const thread = 1 // RUSAGE_THREAD
	var usage syscall.Rusage
	if err := syscall.Getrusage(thread, &usage); err != nil {
		panic(err)
	}
	seconds := func(time syscall.Timeval) float64 { return float64(time.Sec) + float64(time.Usec)*1e-6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}
