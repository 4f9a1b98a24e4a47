package machineload

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Load says how much of the machine was in use between two measurements. 0 means not known.
type Load struct {
	CPU     float64 // share of the cores, or of the quota, 0 to 1
	Memory  float64 // share of the memory, or of the limit, 0 to 1
	Network float64 // share of the busiest interface's rate, 0 to 1

	ReceivedBytesPerSecond float64 // over all interfaces but loopback
	SentBytesPerSecond     float64
}

// Options say where a meter reads. The zero value is this machine.
type Options struct {
	Root fs.FS            // the root folder, with proc and sys; nil: this machine's
	Now  func() time.Time // nil: time.Now
}

// shortest is the shortest time between two measurements: counters of the kernel have steps of 10 ms.
const shortest = 500 * time.Millisecond

// Meter measures the machine's load.
type Meter struct {
	root fs.FS
	now  func() time.Time

	mu    sync.Mutex
	at    time.Time
	cpu   processorTime
	links map[string]traffic
	last  Load
}

// New returns a meter whose first interval begins now.
func New(o Options) *Meter {
	if o.Root == nil {
		o.Root = os.DirFS("/")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Meter{root: o.Root, now: o.Now}
	m.at, m.cpu, m.links = m.now(), m.readProcessorTime(), m.readTraffic()
	return m
}

// Measure returns the load since the last measurement. Within half a second it returns the last one again.
func (m *Meter) Measure() Load {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	elapsed := now.Sub(m.at)
	if elapsed < shortest {
		return m.last
	}
	cpu, links := m.readProcessorTime(), m.readTraffic()
	m.last = Load{CPU: cpu.shareSince(m.cpu, elapsed), Memory: m.readMemoryShare()}
	for name, link := range links {
		before, known := m.links[name]
		if !known {
			continue
		}
		received, sent := rate(before.received, link.received, elapsed), rate(before.sent, link.sent, elapsed)
		m.last.ReceivedBytesPerSecond += received
		m.last.SentBytesPerSecond += sent
		if link.rate > 0 {
			m.last.Network = max(m.last.Network, share(max(received, sent), link.rate))
		}
	}
	m.at, m.cpu, m.links = now, cpu, links
	return m.last
}

// rate is the growth of a counter in a second. A counter that fell began again, so its growth is not known.
func rate(before, after uint64, elapsed time.Duration) float64 {
	if after < before {
		return 0
	}
	return float64(after-before) / elapsed.Seconds()
}

// share is used of whole, within 0 to 1; 0 where the whole is not known.
func share(used, whole float64) float64 {
	if !(whole > 0) || !(used > 0) {
		return 0
	}
	return min(used/whole, 1)
}

// read returns a file's text, "" where there is none.
func (m *Meter) read(name string) string {
	b, err := fs.ReadFile(m.root, name)
	if err != nil {
		return ""
	}
	return string(b)
}

// groupFile returns a file of the process's control group of version 2, "" where there is none.
func (m *Meter) groupFile(name string) string {
	for line := range strings.Lines(m.read("proc/self/cgroup")) {
		if group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return m.read(path.Join("sys/fs/cgroup", group, name))
		}
	}
	return ""
}

// field returns the number behind a key in lines of keys and numbers.
func field(text, key string) (uint64, bool) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) >= 2 && words[0] == key {
			n, err := strconv.ParseUint(words[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
