//go:build !linux

package telemetry

import "fmt"

// Watcher counts commands until Close.
type Watcher struct{}

// Watch begins to time NVMe commands.
func Watch() (*Watcher, error) {
	return nil, fmt.Errorf("watch NVMe commands: %w: it takes Linux", ErrUnavailable)
}

// Read returns the latencies that were counted since Watch.
func (*Watcher) Read() ([]Histogram, error) { return nil, ErrUnavailable }

// Close stops the counting.
func (*Watcher) Close() error { return nil }
