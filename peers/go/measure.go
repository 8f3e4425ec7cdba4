package main

import (
	"fmt"
	"syscall"
	"time"
)

const (
	segment = 4096 // keys between two readings of the clock, as in the other peers
	room    = 256  // answers are written to a buffer that stays in the first-level cache
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

// The counted part of a turn.
type slice struct {
	Counted  int   `json:"counted"`
	Offered  int   `json:"offered"`
	Time     int64 `json:"time_ns"`
	LostCore int64 `json:"lost_core_ns"`
}

// Looks keys up from where the stream was left, for at least that long.
func timed(by entry, on *stream, length time.Duration) slice {
	var answers [room]uint16
	ran, started, done := onCore(), time.Now(), 0
	for {
		end := min(on.at+segment, len(on.keys))
		for from := on.at; from < end; from += room {
			by.lookUp(on.keys[from:min(from+room, end)], answers[:])
		}
		done += end - on.at
		on.at = end % len(on.keys)
		if time.Since(started) >= length {
			break
		}
	}
	elapsed := time.Since(started)
	lost := max(elapsed-(onCore()-ran), 0)
	return slice{done, done, elapsed.Nanoseconds(), lost.Nanoseconds()}
}

// The time during which this thread has had a core; the caller is locked to its thread.
func onCore() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var usage syscall.Rusage
	if err := syscall.Getrusage(thread, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
