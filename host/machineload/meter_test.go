package machineload

import (
	"fmt"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/internal/shared"
)

// machine is a machine whose files and clock a test sets.
type machine struct {
	files fstest.MapFS
	clock time.Time
}

func newMachine() *machine { return &machine{files: fstest.MapFS{}, clock: time.Unix(1e9, 0)} }

func (m *machine) write(name, text string) { m.files[name] = &fstest.MapFile{Data: []byte(text)} }

func (m *machine) meter() *Meter {
	return New(Options{Root: m.files, Now: func() time.Time { return m.clock }, Cores: 4})
}

func (m *machine) pass(d time.Duration) { m.clock = m.clock.Add(d) }

// self writes the counters of the process that measures.
func (m *machine) self(ticks, read, written, kib int) {
	m.write("proc/self/stat", fmt.Sprintf("7 (a name) (x) S 1 7 7 0 -1 4 9 0 0 0 %d %d 5 5 20 0 9 0\n", ticks/2,
		ticks-ticks/2))
	m.write("proc/self/io", fmt.Sprintf("rchar: %d\nwchar: %d\nread_bytes: 1\n", read, written))
	m.write("proc/self/status", fmt.Sprintf("Name:\ta name\nRssAnon:\t %d kB\nRssFile:\t 999 kB\nRssShmem:\t 50 kB\n",
		kib-50))
}

// TestWhatTheProcessUsesCounts measures a process beside others that use the machine: its own counters count, and the
// network's traffic as far as the process can have caused it.
func TestWhatTheProcessUsesCounts(t *testing.T) {
	m := newMachine()
	m.write("proc/stat", "cpu  100 0 100 1000 100 0 0 0 0 0\ncpu0 1 2 3\n")
	m.write("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    1 kB\n")
	m.write("proc/self/cgroup", "1:cpu:/\n0::/a.slice\n")
	m.write("sys/fs/cgroup/a.slice/cpu.max", "max 100000\n")
	m.write("sys/fs/cgroup/a.slice/memory.max", "max\n")
	m.write("proc/net/dev", "Inter-| Receive\n face |bytes\n    lo: 5 0 0 0 0 0 0 0 5 0\n"+
		"  eth0: 1000 0 0 0 0 0 0 0 500 0\n"+
		"  tun0: 7 0 0 0 0 0 0 0 7 0\n")
	m.write("sys/class/net/eth0/speed", "8\n") // a million bytes a second
	m.write("sys/class/net/tun0/speed", "-1\n")
	m.self(10_000, 0, 0, 250)
	meter := m.meter()
	assert.Equal(t, Load{}, meter.Measure(), "no interval yet")

	m.write("proc/stat", "cpu  900 0 900 1000 110 0 5 5 99 99\n") // others use all of it
	m.write("proc/net/dev", "    lo: 9e9 0 0 0 0 0 0 0 9 0\n  eth0: 401000 0 0 0 0 0 0 0 200500 0\n"+
		"  tun0: 1007 0 0 0 0 0 0 0 7 0\n  new0: 7 0 0 0 0 0 0 0 7 0\n")
	m.self(10_160, 900_000, 50_000, 250) // 1.6 of 4 * 2 seconds
	m.pass(2 * time.Second)
	want := Load{CPU: 0.2, Memory: 0.25, Network: 0.2, ReceivedBytesPerSecond: 200_500, SentBytesPerSecond: 25_000}
	assert.Equal(t, want, meter.Measure())
	assert.EqualValues(t, 1000<<10, meter.MemoryLimit())

	m.self(10_560, 900_000, 50_000, 250)
	m.pass(shortest - 1)
	assert.Equal(t, want, meter.Measure(), "too soon: the last one again")
	m.write("proc/net/dev", "  eth0: 9401000 0 0 0 0 0 0 0 9200500 0\n")
	m.pass(1)
	assert.Equal(t, Load{CPU: 1, Memory: 0.25}, meter.Measure(), "the traffic is that of others")
}

func TestLimitsOfTheGroupCount(t *testing.T) {
	m := newMachine()
	m.write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 250 kB\n")
	m.write("proc/self/cgroup", "0::/job\n")
	m.write("sys/fs/cgroup/job/cpu.max", "50000 100000\n") // half a processor
	m.write("sys/fs/cgroup/job/memory.max", "512000\n")
	m.self(0, 0, 0, 300)
	meter := m.meter()
	m.self(40, 0, 0, 300)
	m.pass(time.Second)
	load := meter.Measure()
	assert.InDelta(t, 0.8, load.CPU, 1e-9)
	assert.InDelta(t, 0.6, load.Memory, 1e-9)
	assert.EqualValues(t, 512_000, meter.MemoryLimit())
	m.write("sys/fs/cgroup/job/memory.max", "1024001\n")
	assert.EqualValues(t, 1000<<10, meter.MemoryLimit(), "the machine has less")

	m.write("sys/fs/cgroup/job/cpu.max", "900000 100000\n") // more than the machine has
	m.self(80, 0, 0, 300)
	m.pass(time.Second)
	assert.InDelta(t, 0.1, meter.Measure().CPU, 1e-9)
}

func TestWhatTheKernelDoesNotSayIsZero(t *testing.T) {
	for _, c := range []struct{ name, file, text string }{
		{"no files", "x", ""},
		{"a short line of the process", "proc/self/stat", "7 (x) S 1 2 3\n"},
		{"a line without a name", "proc/self/stat", "7 x\n"},
		{"words for numbers", "proc/self/stat", "7 (x) a b c d e f g h i j k l m n\n"},
		{"memory without a total", "proc/self/status", "RssAnon: 5 kB\n"},
		{"memory without the process", "proc/meminfo", "MemTotal: 5 kB\n"},
		{"an interface without numbers", "proc/net/dev", "eth0: a 0 0 0 0 0 0 0 b\n"},
		{"an interface cut off", "proc/net/dev", "eth0: 1 2\n"},
		{"a group without files", "proc/self/cgroup", "0::/../../etc\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine()
			m.write(c.file, c.text)
			meter := m.meter()
			m.pass(time.Second)
			assert.Equal(t, Load{}, meter.Measure())
		})
	}
}

func TestACounterThatBeganAgainIsNoTraffic(t *testing.T) {
	m := newMachine()
	m.write("proc/net/dev", "eth0: 1000 0 0 0 0 0 0 0 1000\n")
	meter := m.meter()
	m.self(0, 5000, 5000, 50)
	m.write("proc/net/dev", "eth0: 10 0 0 0 0 0 0 0 2000\n")
	m.pass(time.Second)
	assert.Equal(t, Load{SentBytesPerSecond: 1000}, meter.Measure())
}

func TestThisProcessHasALoad(t *testing.T) {
	if runtime.GOOS != "linux" {
		shared.Missing(t, "the counters are Linux's")
	}
	clock := time.Unix(1e9, 0)
	meter := New(Options{Now: func() time.Time { return clock }})
	var load Load
	for end := time.Now().Add(time.Minute); load.CPU == 0 && time.Now().Before(end); { // this loop is the load
		clock = clock.Add(time.Second)
		load = meter.Measure()
	}
	assert.Positive(t, load.CPU)
	assert.Positive(t, load.Memory)
	for _, share := range []float64{load.CPU, load.Memory, load.Network} {
		assert.GreaterOrEqual(t, share, 0.0)
		assert.LessOrEqual(t, share, 1.0)
	}
}
