package exposition

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/host/jobfiles"
)

// Vocabularies returns the metrics of a folder of vocabularies and of what fetches them.
func Vocabularies(files *jobfiles.Store, cache *jobfiles.Cache) prometheus.Collector {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("millrace_vocabularies_"+name, help, nil, nil)
	}
	return &vocabularyCollector{
		files: files, cache: cache,
		count:   describe("files", "Vocabularies on the disk."),
		bytes:   describe("bytes", "Bytes of vocabularies on the disk, those included that are being put or fetched."),
		memory:  describe("memory_bytes", "Memory of the vocabularies in which ids are looked up now."),
		fetched: describe("fetched_total", "Vocabularies that were fetched from members of the control plane."),
		failed:  describe("fetch_failures_total", "Fetches of vocabularies that ended with an error."),
		read:    describe("fetched_bytes_total", "Bytes of the vocabularies that were fetched."),
	}
}

type vocabularyCollector struct {
	files *jobfiles.Store
	cache *jobfiles.Cache

	count, bytes, memory, fetched, failed, read *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *vocabularyCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.count, c.bytes, c.memory, c.fetched, c.failed, c.read} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *vocabularyCollector) Collect(out chan<- prometheus.Metric) {
	n := c.cache.Counts()
	for _, m := range []struct {
		desc  *prometheus.Desc
		kind  prometheus.ValueType
		value float64
	}{
		{c.count, prometheus.GaugeValue, float64(len(c.files.Files()))},
		{c.bytes, prometheus.GaugeValue, float64(c.files.Bytes())},
		{c.memory, prometheus.GaugeValue, float64(n.MemoryBytes)},
		{c.fetched, prometheus.CounterValue, float64(n.Fetched)},
		{c.failed, prometheus.CounterValue, float64(n.Failed)},
		{c.read, prometheus.CounterValue, float64(n.FetchedBytes)},
	} {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value)
	}
}
