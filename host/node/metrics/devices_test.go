package metrics

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/exposition"
	"github.com/millrace/millrace/host/telemetry"
)

// scrape returns what a registry exports.
func scrape(g prometheus.Gatherer) string {
	w := httptest.NewRecorder()
	exposition.Handler(g).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// oneMetric collects a metric that is there.
type oneMetric struct {
	desc *prometheus.Desc
	m    prometheus.Metric
}

func (o oneMetric) Describe(out chan<- *prometheus.Desc) { out <- o.desc }
func (o oneMetric) Collect(out chan<- prometheus.Metric) { out <- o.m }

// TestLatencyMetric: bucket i of the kernel's histogram ends at 2^(i+1) nanoseconds; what is above the last bucket is
// in the count alone.
func TestLatencyMetric(t *testing.T) {
	m := newDeviceCollector(Options{})
	h := &telemetry.Histogram{Controller: 3, Opcode: 2, Count: 7, Total: 30 * time.Second}
	h.Counts[0], h.Counts[9], h.Counts[10], h.Counts[40] = 1, 2, 3, 1
	r := prometheus.NewRegistry()
	require.NoError(t, r.Register(oneMetric{m.latency, latencyMetric(m.latency, h)}))
	said := scrape(r)
	for _, want := range []string{
		`millrace_nvme_command_seconds_bucket{controller="nvme3",opcode="02h",queue="io",le="1.024e-06"} 3`,
		`millrace_nvme_command_seconds_bucket{controller="nvme3",opcode="02h",queue="io",le="2.048e-06"} 6`,
		`millrace_nvme_command_seconds_bucket{controller="nvme3",opcode="02h",queue="io",le="17.179869184"} 6`,
		`millrace_nvme_command_seconds_bucket{controller="nvme3",opcode="02h",queue="io",le="+Inf"} 7`,
		`millrace_nvme_command_seconds_sum{controller="nvme3",opcode="02h",queue="io"} 30`,
	} {
		assert.Contains(t, said, want)
	}
	h.Admin = true
	r = prometheus.NewRegistry()
	require.NoError(t, r.Register(oneMetric{m.latency, latencyMetric(m.latency, h)}))
	assert.Contains(t, scrape(r), `queue="admin"`)
}
