// Package sidemeter counts the rows that one of two sides makes, and the time that it takes.
//
// # Concurrency
//
// A [Meter] may be used from any goroutine.
package sidemeter

import (
	"sync"
	"time"
)

// Meter counts the rows that a side makes, and the time in which at least one mini-batch of the side is being
// made. A stream that waits for room in the input queue makes no mini-batch. The zero value works; its methods may
// be called from any goroutine.
type Meter struct {
	mu     sync.Mutex
	making int // streams that are making a mini-batch
	since  time.Time
	made   Totals
}

// Totals are the totals of a side.
type Totals struct {
	Rows int64
	Busy time.Duration
}

// Enter begins a mini-batch.
func (m *Meter) Enter() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.making++; m.making == 1 {
		m.since = time.Now()
	}
}

// Leave ends a mini-batch. rows is the number of its rows, or 0 if the mini-batch was not made.
func (m *Meter) Leave(rows int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made.Rows += int64(rows)
	if m.making--; m.making == 0 {
		m.made.Busy += time.Since(m.since)
	}
}

// Read returns the totals until now.
func (m *Meter) Read() Totals {
	m.mu.Lock()
	defer m.mu.Unlock()
	made := m.made
	if m.making > 0 {
		made.Busy += time.Since(m.since)
	}
	return made
}
