package machineload

import (
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Load says how much of the machine this process used between two measurements. 0 means not known.
type Load struct {
	CPU     float64 // share of the cores, or of the quota, 0 to 1
	Memory  float64 // share of the memory, or of the limit, 0 to 1
	Network float64 // share of the busiest interface's rate, 0 to 1

	ReceivedBytesPerSecond float64 // at most, over all interfaces but loopback
	SentBytesPerSecond     float64 // at most, as for received bytes
}

// Options say where a meter reads. The zero value is this machine.
type Options struct {
	Root  fs.FS            // the root folder, with proc and sys; nil: this machine's
	Now   func() time.Time // nil: time.Now
	Cores int              // processors that the process may use; 0: runtime.NumCPU
}

// shortest is the shortest time between two measurements: counters of the kernel have steps of 10 ms.
const shortest = 500 * time.Millisecond

// Meter measures how much of its machine this process uses.
type Meter struct {
	root  fs.FS
	now   func() time.Time
	cores float64

	mu     sync.Mutex
	at     time.Time
	before counters
	last   Load
}

// counters are the values of the kernel's counters at one moment.
type counters struct {
	cpu      float64 // ticks
	cpuKnown bool
	moved    traffic            // bytes that the process has read and written, of files and connections
	links    map[string]traffic // by interface
}

func (m *Meter) readCounters() (c counters) {
	c.cpu, c.cpuKnown = m.readProcessorTicks()
	c.moved, c.links = m.readMoved(), m.readTraffic()
	return c
}

// New returns a meter whose first interval begins now.
func New(o Options) *Meter {
	if o.Root == nil {
		o.Root = os.DirFS("/")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Cores == 0 {
		o.Cores = runtime.NumCPU()
	}
	m := &Meter{root: o.Root, now: o.Now, cores: float64(o.Cores)}
	m.at, m.before = m.now(), m.readCounters()
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
	c, before := m.readCounters(), m.before
	m.last = Load{Memory: m.readMemoryShare()}
	if c.cpuKnown && before.cpuKnown {
		m.last.CPU = share((c.cpu-before.cpu)/ticksPerSecond, m.processors()*elapsed.Seconds())
	}
	read, written := before.moved.rates(c.moved, elapsed)
	for name, link := range c.links {
		earlier, known := before.links[name]
		if !known {
			continue
		}
		received, sent := earlier.rates(link, elapsed)
		m.last.ReceivedBytesPerSecond += received
		m.last.SentBytesPerSecond += sent
		if link.rate > 0 {
			m.last.Network = max(m.last.Network, share(max(min(received, read), min(sent, written)), link.rate))
		}
	}
	m.last.ReceivedBytesPerSecond = min(m.last.ReceivedBytesPerSecond, read)
	m.last.SentBytesPerSecond = min(m.last.SentBytesPerSecond, written)
	m.at, m.before = now, c
	return m.last
}

// rates returns the growth of traffic in a second.
func (t traffic) rates(after traffic, elapsed time.Duration) (received, sent float64) {
	return rate(t.received, after.received, elapsed), rate(t.sent, after.sent, elapsed)
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
