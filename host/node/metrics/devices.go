package metrics

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/health"
	"github.com/millrace/millrace/host/node/drives"
	"github.com/millrace/millrace/host/telemetry"
)

// deviceCollector collects the values of the drives' SMART logs, how full the drives are, and how long the kernel's
// NVMe commands take.
type deviceCollector struct {
	drives    func() []drives.Status
	freeBytes func(*host.Drive) int64
	watcher   *telemetry.Watcher // nil: no drive is behind the kernel, or its commands cannot be timed

	warnings, media, used, spare, temperature, free, size, latency *prometheus.Desc
}

func newDeviceCollector(o Options) *deviceCollector {
	c := &deviceCollector{
		drives:    o.Drives,
		freeBytes: o.FreeBytes,
		warnings:  describe("device_critical_warnings", "Critical warnings of the drive's SMART log.", "drive"),
		media:     describe("device_media_errors_total", "Media errors of the drive's SMART log, ever.", "drive"),
		used:      describe("device_life_used_ratio", "Share of the drive's life that is used; may pass 1.", "drive"),
		spare:     describe("device_spare_ratio", "Spare space of the drive that is left.", "drive"),
		temperature: describe("device_temperature_celsius", "Temperature of the drive, where it has a sensor.",
			"drive"),
		free: describe("device_free_bytes", "Bytes of the drive's volume that are free.", "drive"),
		size: describe("device_size_bytes", "Bytes of the drive.", "drive"),
		latency: describe("nvme_command_seconds",
			"Latencies of the kernel's NVMe commands, by controller, queue and opcode.",
			"controller", "queue", "opcode"),
	}
	if o.TimeCommands {
		c.watcher = watchCommands(o.Log)
	}
	return c
}

// watchCommands times the kernel's NVMe commands, or logs why it cannot and returns nil.
func watchCommands(log *slog.Logger) *telemetry.Watcher {
	w, err := telemetry.Watch()
	if err != nil {
		log.Warn("NVMe commands are not timed", "error", err)
		return nil
	}
	return w
}

func (c *deviceCollector) close() error {
	if c.watcher == nil {
		return nil
	}
	return c.watcher.Close()
}

// Describe implements prometheus.Collector.
func (c *deviceCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.warnings, c.media, c.used, c.spare, c.temperature, c.free, c.size, c.latency,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *deviceCollector) Collect(out chan<- prometheus.Metric) {
	for _, d := range c.drives() {
		if d.Drive == nil {
			continue
		}
		out <- gaugeOf(c.free, float64(c.freeBytes(d.Drive)), d.Name)
		if device := d.Drive.Device(); device != nil {
			out <- gaugeOf(c.size, float64(device.Info().Size), d.Name)
		}
		if d.Health != nil {
			c.collectHealth(out, d.Name, d.Health)
		}
	}
	if c.watcher == nil {
		return
	}
	histograms, err := c.watcher.Read()
	if err != nil {
		out <- prometheus.NewInvalidMetric(c.latency, err)
		return
	}
	for i := range histograms {
		out <- latencyMetric(c.latency, &histograms[i])
	}
}

// collectHealth collects what one drive's SMART log says.
func (c *deviceCollector) collectHealth(out chan<- prometheus.Metric, drive string, smart *health.SMARTLog) {
	out <- gaugeOf(c.warnings, float64(len(smart.Warnings)), drive)
	out <- prometheus.MustNewConstMetric(c.media, prometheus.CounterValue, float64(smart.MediaErrors), drive)
	for desc, percent := range map[*prometheus.Desc]*int{c.used: smart.Used, c.spare: smart.Spare} {
		if percent != nil {
			out <- gaugeOf(desc, float64(*percent)/100, drive)
		}
	}
	if smart.Temperature != nil {
		out <- gaugeOf(c.temperature, float64(*smart.Temperature), drive)
	}
}

func gaugeOf(desc *prometheus.Desc, v float64, drive string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, drive)
}

// Bits of the latencies, in nanoseconds, of the exported buckets: from a microsecond to 17 seconds.
const (
	firstLatency = 10
	lastLatency  = 34
)

// latencyMetric turns a histogram of the kernel into one of Prometheus. Bucket i of the kernel's ends at 2^(i+1)
// nanoseconds, and a bucket of Prometheus counts everything below its end.
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
	return prometheus.MustNewConstHistogram(desc, h.Count, h.Total.Seconds(), buckets,
		fmt.Sprintf("nvme%d", h.Controller), queue, fmt.Sprintf("%02xh", h.Opcode))
}
