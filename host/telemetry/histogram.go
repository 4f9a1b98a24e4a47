package telemetry

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// ErrUnavailable says that this machine cannot watch NVMe commands. The error that wraps it says why.
var ErrUnavailable = errors.New("NVMe commands cannot be timed here")

// Buckets is the number of buckets of a histogram: bucket i counts latencies of 2^i nanoseconds to less than twice
// that.
const Buckets = 64

// Histogram counts the commands of one opcode to one controller.
type Histogram struct {
	Controller uint32          `json:"controller"` // the kernel's instance: 0 is nvme0
	Admin      bool            `json:"admin"`
	Opcode     uint8           `json:"opcode"`
	Count      uint64          `json:"count"`
	Total      time.Duration   `json:"total_nanoseconds"`
	Counts     [Buckets]uint64 `json:"buckets"`
}

// Mean returns the average latency, or 0 if no command was counted.
func (h *Histogram) Mean() time.Duration {
	if h.Count == 0 {
		return 0
	}
	return h.Total / time.Duration(h.Count)
}

// Quantile returns the latency below which a share q, from 0 to 1, of the commands stays, rounded up to the next power
// of two.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.Count == 0 {
		return 0
	}
	rank, seen := uint64(q*float64(h.Count)), uint64(0)
	for i, n := range h.Counts {
		seen += n
		if seen > rank || seen == h.Count {
			return time.Duration(1) << min(i+1, 62)
		}
	}
	return time.Duration(1) << 62
}

// cell is one entry of the kernel's map: key and value as the program writes them.
type cell struct {
	controller, what uint32 // what: opcode, from bit 8 on admin, from bit 16 on bucket
	count, total     uint64
}

// assemble makes histograms of cells, sorted by controller, queue and opcode.
func assemble(cells []cell) []Histogram {
	type key struct {
		controller, what uint32
	}
	found := map[key]*Histogram{}
	for _, c := range cells {
		k := key{c.controller, c.what & 0xffff}
		h := found[k]
		if h == nil {
			h = &Histogram{Controller: c.controller, Admin: c.what>>8&1 != 0, Opcode: uint8(c.what)}
			found[k] = h
		}
		h.Count += c.count
		h.Total += time.Duration(c.total)
		h.Counts[c.what>>16%Buckets] += c.count
	}
	all := make([]Histogram, 0, len(found))
	for _, h := range found {
		all = append(all, *h)
	}
	slices.SortFunc(all, func(a, b Histogram) int {
		return cmp.Or(cmp.Compare(a.Controller, b.Controller), cmp.Compare(queueOrder(a), queueOrder(b)),
			cmp.Compare(a.Opcode, b.Opcode))
	})
	return all
}

// queueOrder sorts the admin queue before the others.
func queueOrder(h Histogram) int {
	if h.Admin {
		return 0
	}
	return 1
}
