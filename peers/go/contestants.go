package main

import (
	"net/netip"
	"runtime"
	"time"

	"github.com/gaissmai/bart"
)

// A library that takes part. Each calls its own lookups directly, in a loop of its own.
type contestant struct {
	name, family string
	build        func([]route) lookups
}

// Writes the next hop of keys[i] to answers[i].
type lookups func(keys []netip.Addr, answers []uint16)

var contestants = []contestant{
	{"bart_table_inet", "inet", table}, {"bart_fast_inet", "inet", fast},
	{"bart_table_inet6", "inet6", table}, {"bart_fast_inet6", "inet6", fast},
}

func table(routes []route) lookups {
	built := new(bart.Table[uint16])
	for _, route := range routes {
		built.Insert(route.prefix, route.nextHop)
	}
	return func(keys []netip.Addr, answers []uint16) {
		for i, key := range keys {
			answers[i], _ = built.Lookup(key)
		}
	}
}

func fast(routes []route) lookups {
	built := new(bart.Fast[uint16])
	for _, route := range routes {
		built.Insert(route.prefix, route.nextHop)
	}
	return func(keys []netip.Addr, answers []uint16) {
		for i, key := range keys {
			answers[i], _ = built.Lookup(key)
		}
	}
}

// A contestant whose structure has been built from the table.
type entry struct {
	name, family string
	lookUp       lookups
	bytes        uint64
	seconds      float64
}

func (c contestant) take(routes []route) entry {
	before := liveHeap()
	started := time.Now()
	lookUp := c.build(routes)
	seconds := time.Since(started).Seconds()
	after := liveHeap()
	runtime.KeepAlive(routes)
	return entry{c.name + ":1", c.family, lookUp, after - min(before, after), seconds}
}

func liveHeap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
