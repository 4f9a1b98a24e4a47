package worker

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/host/source"
)

// counters count the reads of partitions by the kind of their place, and the failed reads by their cause.
type counters struct {
	nodeBytes, storeBytes atomic.Int64
	failures              [failureKinds]atomic.Int64
}

// failureKind is why a read of a place failed.
type failureKind int

// The kinds of failures.
const (
	otherFailure failureKind = iota
	changedFailure
	corruptFailure
	truncatedFailure
	throttledFailure
	unreachableFailure
	missingFailure
	failureKinds
)

// failureNames are the kinds as metrics call them.
var failureNames = [failureKinds]string{"other", "changed", "corrupt", "truncated", "throttled", "unreachable",
	"missing"}

// failureKindOf returns the kind of an error.
func failureKindOf(err error) failureKind {
	var (
		changed     *source.ChangedError
		corrupt     *source.CorruptError
		truncated   *source.TruncatedError
		throttled   *source.ThrottledError
		unreachable *source.UnreachableError
		missing     *source.NotFoundError
	)
	switch {
	case errors.As(err, &changed):
		return changedFailure
	case errors.As(err, &corrupt):
		return corruptFailure
	case errors.As(err, &truncated):
		return truncatedFailure
	case errors.As(err, &throttled):
		return throttledFailure
	case errors.As(err, &unreachable):
		return unreachableFailure
	case errors.As(err, &missing):
		return missingFailure
	}
	return otherFailure
}

// countRead counts the result of a read at a place.
func (p *Partitions) countRead(at *place, n int, err error) {
	if at.isStore {
		p.counters.storeBytes.Add(int64(n))
	} else {
		p.counters.nodeBytes.Add(int64(n))
	}
	if err != nil {
		p.counters.failures[failureKindOf(err)].Add(1)
	}
}

// collector collects a worker's counters of reads.
type collector struct {
	partitions *Partitions

	bytes, failures, requests, unneeded, retries, stalled *prometheus.Desc
}

// newCollector makes the collector of a worker's counters of reads.
func newCollector(p *Partitions) *collector {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("millrace_worker_"+name, help, labels, nil)
	}
	return &collector{
		partitions: p,
		bytes:      describe("read_bytes_total", "Bytes of partitions that came, by what they came from.", "source"),
		failures: describe("read_failures_total", "Requests for ranges of partitions that failed, by the reason; "+
			"most are tried again elsewhere.", "reason"),
		requests: describe("read_requests_total", "Requests for ranges of partitions; each joins what lies near."),
		unneeded: describe("read_unneeded_bytes_total",
			"Bytes of partitions that came and were not needed: joined gaps, and what was read ahead in vain."),
		retries: describe("read_retries_total", "Requests for ranges of partitions that were made again."),
		stalled: describe("read_stalled_seconds_total", "Time that windows waited for bytes that had not come yet."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.bytes, c.failures, c.requests, c.unneeded, c.retries, c.stalled} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	read := &c.partitions.counters
	count(c.bytes, float64(read.nodeBytes.Load()), "node")
	count(c.bytes, float64(read.storeBytes.Load()), "store")
	for kind := range read.failures {
		count(c.failures, float64(read.failures[kind].Load()), failureNames[kind])
	}
	s := c.partitions.statistics()
	count(c.requests, float64(s.Requests))
	count(c.unneeded, float64(s.Unneeded))
	count(c.retries, float64(s.Retries))
	count(c.stalled, s.Stalled.Seconds())
}
