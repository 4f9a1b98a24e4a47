package node

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/exposition"
)

// TestDriveHealthIsExported checks the metrics of an open drive: its SMART log, and its room.
func TestDriveHealthIsExported(t *testing.T) {
	f := start(t, nil, fill(t, "file", nil))
	// The drive takes splits before its health is read.
	f.wait("the drive's health", func() bool {
		_, said, _ := f.get(f.base + "/metrics")
		return strings.Contains(string(said), "millrace_device_critical_warnings{")
	})
	_, said, _ := f.get(f.base + "/metrics")
	for _, want := range []string{
		`millrace_device_critical_warnings{drive="d0"} 0`, `millrace_device_media_errors_total{drive="d0"} 0`,
		`millrace_device_life_used_ratio{drive="d0"} `,
		`millrace_device_free_bytes{drive="d0"} `, `millrace_device_size_bytes{drive="d0"} `, "millrace_build_info{",
		"go_goroutines",
	} {
		assert.Contains(t, string(said), want)
	}
}

// TestMetricsLeaveTheRegistry checks that an agent that is closed leaves nothing of its own in a registry that it was
// given, so that the next agent may have it.
func TestMetricsLeaveTheRegistry(t *testing.T) {
	registry := prometheus.NewRegistry()
	c := DefaultConfig()
	c.Name, c.Listen = "n0", []string{"127.0.0.1:0"}
	for range 2 {
		a, err := Start(t.Context(), c, Options{Registry: registry})
		require.NoError(t, err)
		assert.Contains(t, scrape(registry), "millrace_node_jobs 0")
		require.NoError(t, a.Close())
		assert.NotContains(t, scrape(registry), "millrace_node_")
	}
}

// scrape returns what a registry exports.
func scrape(g prometheus.Gatherer) string {
	w := httptest.NewRecorder()
	exposition.Handler(g).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}
