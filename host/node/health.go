package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/health"
	"github.com/millrace/millrace/host/telemetry"
)

// healthEvery is how often a drive's SMART log is read.
const healthEvery = 30 * time.Second

// readHealth reads the drive's SMART log if the last reading is old. A drive that does not tell has none, which is no
// fault of its.
func (v *supervisor) readHealth(ctx context.Context, d *host.Drive) {
	v.agent.mu.Lock()
	fresh := time.Since(v.healthAt) < healthEvery
	v.agent.mu.Unlock()
	if fresh || d.Device() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	r, err := health.Read(ctx, d.Device())
	if err != nil {
		v.agent.log.Debug("drive does not tell its health", "drive", v.config.Name, "error", err)
		r = nil
	}
	v.agent.mu.Lock()
	defer v.agent.mu.Unlock()
	v.health, v.healthAt = r, time.Now()
}

// healthMetrics collects what the drives' SMART logs say, how full the drives are, and how long the kernel's NVMe
// commands take.
type healthMetrics struct {
	agent                                                          *Agent
	watch                                                          *telemetry.Watcher // nil: no drive behind the kernel, or it cannot be watched
	warnings, media, used, spare, temperature, free, size, latency *prometheus.Desc
}

func newHealthMetrics(a *Agent) *healthMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("millrace_"+name, help, labels, nil)
	}
	return &healthMetrics{
		agent:       a,
		warnings:    desc("device_critical_warnings", "Critical warnings of the drive's SMART log.", "drive"),
		media:       desc("device_media_errors_total", "Media errors of the drive's SMART log, ever.", "drive"),
		used:        desc("device_life_used_ratio", "Share of the drive's life that is used; may pass 1.", "drive"),
		spare:       desc("device_spare_ratio", "Spare space of the drive that is left.", "drive"),
		temperature: desc("device_temperature_celsius", "Temperature of the drive, where it has a sensor.", "drive"),
		free:        desc("device_free_bytes", "Bytes of the drive's volume that are free.", "drive"),
		size:        desc("device_size_bytes", "Bytes of the drive.", "drive"),
		latency:     desc("nvme_command_seconds", "Latencies of the kernel's NVMe commands, by controller, queue and opcode.", "controller", "queue", "opcode"),
	}
}

// watchCommands times the commands of drives behind the kernel, if there are any, until Close.
func (m *healthMetrics) watchCommands(drives []DriveConfig) {
	for _, d := range drives {
		if !strings.HasPrefix(d.URI, "nvme:") {
			continue
		}
		w, err := telemetry.Watch()
		if err != nil {
			m.agent.log.Warn("NVMe commands are not timed", "error", err)
			return
		}
		m.watch = w
		return
	}
}

func (m *healthMetrics) close() error {
	if m.watch == nil {
		return nil
	}
	return m.watch.Close()
}

// Describe implements prometheus.Collector.
func (m *healthMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.warnings, m.media, m.used, m.spare, m.temperature, m.free, m.size, m.latency} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *healthMetrics) Collect(out chan<- prometheus.Metric) {
	type drive struct {
		name  string
		open  *host.Drive
		smart *health.Report
	}
	a := m.agent
	a.mu.Lock()
	drives := make([]drive, len(a.drives))
	for i, v := range a.drives {
		drives[i] = drive{v.config.Name, v.drive, v.health}
	}
	a.mu.Unlock()
	for _, d := range drives {
		gauge := func(desc *prometheus.Desc, v float64) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, d.name)
		}
		if d.open != nil {
			gauge(m.free, float64(a.manager.Status(d.open).Free))
			if dev := d.open.Device(); dev != nil {
				gauge(m.size, float64(dev.Info().Size))
			}
		}
		if d.open == nil || d.smart == nil {
			continue
		}
		gauge(m.warnings, float64(len(d.smart.Warnings)))
		out <- prometheus.MustNewConstMetric(m.media, prometheus.CounterValue, float64(d.smart.MediaErrors), d.name)
		for desc, percent := range map[*prometheus.Desc]*int{m.used: d.smart.Used, m.spare: d.smart.Spare} {
			if percent != nil {
				gauge(desc, float64(*percent)/100)
			}
		}
		if d.smart.Temperature != nil {
			gauge(m.temperature, float64(*d.smart.Temperature))
		}
	}
	if m.watch == nil {
		return
	}
	list, err := m.watch.Read()
	if err != nil {
		out <- prometheus.NewInvalidMetric(m.latency, err)
		return
	}
	for i := range list {
		out <- latencyMetric(m.latency, &list[i])
	}
}

// Buckets of latencies that are exported: from a microsecond to 17 seconds.
const (
	firstLatency = 10
	lastLatency  = 34
)

// latencyMetric is a histogram of the kernel's as Prometheus has it: bucket i of ours ends at 2^(i+1) nanoseconds.
func latencyMetric(desc *prometheus.Desc, h *telemetry.Histogram) prometheus.Metric {
	queue := "io"
	if h.Admin {
		queue = "admin"
	}
	buckets, below := map[float64]uint64{}, uint64(0)
	for i, n := range h.Counts {
		below += n
		if i+1 >= firstLatency && i+1 <= lastLatency {
			buckets[(time.Duration(1) << (i + 1)).Seconds()] = below
		}
	}
	return prometheus.MustNewConstHistogram(desc, h.Count, h.Total.Seconds(), buckets, fmt.Sprintf("nvme%d", h.Controller), queue, fmt.Sprintf("%02xh", h.Opcode))
}
