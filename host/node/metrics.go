package node

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/host/exposition"
)

// metrics are the node's. Labels are drives, codes and pipelines' digests: bounded.
type metrics struct {
	agent    *Agent
	registry *prometheus.Registry
	health   *healthMetrics
	daemon   func() // takes what every daemon exports out of the registry

	rows     *prometheus.CounterVec
	batches  *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	failures *prometheus.CounterVec
	cut      prometheus.Counter
	latency  *prometheus.HistogramVec

	buffered, bufferedBytes, jobs, draining, fence *prometheus.Desc
	busy, running, ready, opens, p, drift, image   *prometheus.Desc
}

func newMetrics(a *Agent, registry *prometheus.Registry) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "millrace_node_" + name, Help: help}, labels)
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("millrace_"+name, help, labels, nil)
	}
	m := &metrics{
		agent: a, registry: registry,
		rows:     counter("rows_total", "Rows of mini-batches written to launchers.", "drive"),
		batches:  counter("minibatches_total", "Mini-batches written to launchers.", "drive"),
		bytes:    counter("bytes_total", "Bytes of mini-batches written to launchers.", "drive"),
		failures: counter("minibatch_failures_total", "Requests for mini-batches that were answered with an error.", "code"),
		cut:      prometheus.NewCounter(prometheus.CounterOpts{Name: "millrace_node_cut_total", Help: "Responses whose client did not take them whole."}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "millrace_node_minibatch_seconds", Help: "Time from a request for a mini-batch until it was written.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16), NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, []string{"drive"}),
		buffered:      desc("node_buffered_minibatches", "Mini-batches made and not yet written."),
		bufferedBytes: desc("node_buffered_bytes", "Bytes of mini-batches made and not yet written."),
		jobs:          desc("node_jobs", "Jobs prepared."),
		draining:      desc("node_draining", "1 while the node takes no new splits."),
		fence:         desc("node_fence", "Fence of the latest leader seen."),
		busy:          desc("device_busy_ratio", "Engine threads busy in the last second, 0 to threads.", "drive"),
		running:       desc("device_splits_running", "Splits open on the drive.", "drive"),
		ready:         desc("device_ready", "1 while the drive takes splits.", "drive"),
		opens:         desc("device_opens_total", "How often the drive was opened since the node started.", "drive"),
		drift:         desc("device_image_drift", "1 while the drive is not at the image that the configuration names.", "drive"),
		image:         desc("device_image_info", "1, labelled with the image that the drive runs.", "drive", "image"),
		p:             desc("device_p_rows_per_second", "P as measured, by pipeline.", "drive", "pipeline"),
	}
	m.health = newHealthMetrics(a)
	for _, c := range []prometheus.Collector{m.rows, m.batches, m.bytes, m.failures, m.cut, m.latency, m, m.health} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	var err error
	m.daemon, err = exposition.Register(registry, exposition.Options{Version: a.o.Version, Identity: a.config.identity()})
	return m, err
}

// served counts a mini-batch that was written.
func (m *metrics) served(drive string, rows int, bytes int64, took time.Duration) {
	m.rows.WithLabelValues(drive).Add(float64(rows))
	m.batches.WithLabelValues(drive).Inc()
	m.bytes.WithLabelValues(drive).Add(float64(bytes))
	m.latency.WithLabelValues(drive).Observe(took.Seconds())
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.buffered, m.bufferedBytes, m.jobs, m.draining, m.fence, m.busy, m.running, m.ready, m.opens, m.drift, m.image, m.p} {
		ch <- d
	}
}

// Collect implements prometheus.Collector, from the node's status.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	a := m.agent
	s, err := a.status(false)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(m.buffered, err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	one := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	gauge(m.buffered, float64(s.BufferedBatches))
	gauge(m.bufferedBytes, float64(s.BufferedBytes))
	gauge(m.jobs, float64(len(s.Jobs)))
	gauge(m.draining, one(s.Draining))
	a.mu.Lock()
	opens, drift := make([]int, len(a.drives)), make([]bool, len(a.drives))
	for i, v := range a.drives {
		opens[i], drift[i] = v.opens, v.drift != ""
	}
	a.mu.Unlock()
	gauge(m.fence, float64(a.fence.Get()))
	for i, d := range s.Drives {
		gauge(m.busy, d.Busy, d.Name)
		gauge(m.running, float64(d.Running), d.Name)
		gauge(m.drift, one(drift[i]), d.Name)
		if d.Image != "" {
			gauge(m.image, 1, d.Name, d.Image)
		}
		gauge(m.ready, one(d.State == "ready"), d.Name)
		ch <- prometheus.MustNewConstMetric(m.opens, prometheus.CounterValue, float64(opens[i]), d.Name)
		for pipeline, rate := range d.PRowsPerSecond {
			gauge(m.p, rate, d.Name, pipeline[:min(12, len(pipeline))])
		}
	}
}

// handler serves the registry.
func (m *metrics) handler() http.Handler {
	return exposition.Handler(m.registry)
}
