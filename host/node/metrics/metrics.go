package metrics

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/host"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/exposition"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node/drives"
)

// Options are the things that a Metrics needs of its node. All but Registry and Version are required.
type Options struct {
	Registry     *prometheus.Registry // nil: one of its own
	Version      string               // Version is that of the program.
	Identity     identity.Options     // whose certificates are watched
	Status       func() (*apiv1.NodeStatus, error)
	Drives       func() []drives.Status
	FreeBytes    func(*host.Drive) int64 // free bytes of the drive's volume
	Fence        func() uint64           // Fence is that of the latest leader.
	Vocabularies prometheus.Collector    // Vocabularies has the counters of the vocabularies of jobs.
	// TimeCommands times the kernel's NVMe commands, where the kernel and the process's rights allow it.
	TimeCommands bool
	Log          *slog.Logger
}

// Metrics are a node's. Their labels are drives, codes and digests of pipelines, so that the number of series is
// bounded.
type Metrics struct {
	o          Options
	registry   *prometheus.Registry
	registered []prometheus.Collector
	devices    *deviceCollector

	rows      *prometheus.CounterVec
	fragments *prometheus.CounterVec
	batches   *prometheus.CounterVec
	bytes     *prometheus.CounterVec
	failures  *prometheus.CounterVec
	cut       prometheus.Counter
	latency   *prometheus.HistogramVec

	buffered, bufferedBytes, jobs, draining, fence *prometheus.Desc
	busy, running, ready, opens, p, drift, image   *prometheus.Desc
}

// describe makes the description of a metric.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("millrace_"+name, help, labels, nil)
}

// New registers a node's metrics.
func New(o Options) (*Metrics, error) {
	m := &Metrics{o: o, registry: o.Registry}
	if m.registry == nil {
		m.registry = prometheus.NewRegistry()
	}
	m.makeCounters()
	m.makeDescriptions()
	m.devices = newDeviceCollector(o)
	for _, c := range []prometheus.Collector{
		m.rows, m.fragments, m.batches, m.bytes, m.failures, m.cut, m.latency, &nodeCollector{m}, m.devices, o.Vocabularies,
	} {
		if err := m.registry.Register(c); err != nil {
			return nil, errors.Join(err, m.Close())
		}
		m.registered = append(m.registered, c)
	}
	if _, err := exposition.Register(m.registry,
		exposition.Options{Version: o.Version, Identity: o.Identity}); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *Metrics) makeCounters() {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "millrace_node_" + name, Help: help}, labels)
	}
	m.rows = counter("rows_total", "Rows of mini-batches written to launchers.", "drive")
	m.fragments = counter("fragments_total", "Fragments written to launchers; a whole mini-batch is one.", "drive")
	m.batches = counter("minibatches_total", "Mini-batches whose first row was written to launchers.", "drive")
	m.bytes = counter("bytes_total", "Bytes of mini-batches written to launchers.", "drive")
	m.failures = counter("minibatch_failures_total", "Requests for fragments that were answered with an error.",
		"code")
	m.cut = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "millrace_node_cut_total", Help: "Responses whose client did not take them whole.",
	})
	m.latency = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "millrace_node_minibatch_seconds", Help: "Time from a request for a fragment until it was written.",
		Buckets:                     prometheus.ExponentialBuckets(0.0005, 2, 16),
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
	}, []string{"drive"})
}

func (m *Metrics) makeDescriptions() {
	m.buffered = describe("node_buffered_fragments", "Fragments made and not yet written; a whole mini-batch is one.")
	m.bufferedBytes = describe("node_buffered_bytes", "Bytes of fragments made and not yet written.")
	m.jobs = describe("node_jobs", "Jobs prepared.")
	m.draining = describe("node_draining", "1 while the node takes no new splits.")
	m.fence = describe("node_fence", "Fence of the latest leader seen.")
	m.busy = describe("device_busy_ratio", "Engine threads busy in the last second, 0 to threads.", "drive")
	m.running = describe("device_splits_running", "Splits open on the drive.", "drive")
	m.ready = describe("device_ready", "1 while the drive takes splits.", "drive")
	m.opens = describe("device_opens_total", "How often the drive was opened since the node started.", "drive")
	m.drift = describe("device_image_drift", "1 while the drive is not at the image that the configuration names.",
		"drive")
	m.image = describe("device_image_info", "1, labelled with the image that the drive runs.", "drive", "image")
	m.p = describe("device_p_rows_per_second", "P as measured, by pipeline.", "drive", "pipeline")
}

// Handler serves the metrics of the registry, including those that other packages registered.
func (m *Metrics) Handler() http.Handler { return exposition.Handler(m.registry) }

// Close ends the timing of commands and takes the node's metrics out of the registry.
func (m *Metrics) Close() error {
	for _, c := range m.registered {
		m.registry.Unregister(c)
	}
	m.registered = nil
	return m.devices.close()
}

// Delivered implements delivery.Counter.
func (m *Metrics) Delivered(drive string, rows int, first bool, bytes int64, took time.Duration) {
	m.rows.WithLabelValues(drive).Add(float64(rows))
	m.fragments.WithLabelValues(drive).Inc()
	if first {
		m.batches.WithLabelValues(drive).Inc()
	}
	m.bytes.WithLabelValues(drive).Add(float64(bytes))
	m.latency.WithLabelValues(drive).Observe(took.Seconds())
}

// Refused implements delivery.Counter.
func (m *Metrics) Refused(code string) { m.failures.WithLabelValues(code).Inc() }

// CutOff implements delivery.Counter.
func (m *Metrics) CutOff() { m.cut.Inc() }

// nodeCollector collects the values of the node's status.
type nodeCollector struct{ *Metrics }

// Describe implements prometheus.Collector.
func (m *nodeCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		m.buffered, m.bufferedBytes, m.jobs, m.draining, m.fence, m.busy, m.running, m.ready, m.opens, m.drift, m.image,
		m.p,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *nodeCollector) Collect(out chan<- prometheus.Metric) {
	status, err := m.o.Status()
	if err != nil {
		out <- prometheus.NewInvalidMetric(m.buffered, err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(m.buffered, float64(status.BufferedBatches))
	gauge(m.bufferedBytes, float64(status.BufferedBytes))
	gauge(m.jobs, float64(len(status.Jobs)))
	gauge(m.draining, indicator(status.Draining))
	gauge(m.fence, float64(m.o.Fence()))
	for _, d := range status.Drives {
		gauge(m.busy, d.Busy, d.Name)
		gauge(m.running, float64(d.Running), d.Name)
		if d.Image != "" {
			gauge(m.image, 1, d.Name, d.Image)
		}
		gauge(m.ready, indicator(d.State == "ready"), d.Name)
		for pipeline, rate := range d.PRowsPerSecond {
			gauge(m.p, rate, d.Name, pipeline[:min(12, len(pipeline))])
		}
	}
	for _, d := range m.o.Drives() {
		gauge(m.drift, indicator(d.Drift != ""), d.Name)
		out <- prometheus.MustNewConstMetric(m.opens, prometheus.CounterValue, float64(d.Opens), d.Name)
	}
}

// indicator is 1 for true and 0 for false.
func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
