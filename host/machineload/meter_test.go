package machineload

import (
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
	return New(Options{Root: m.files, Now: func() time.Time { return m.clock }})
}

func (m *machine) pass(d time.Duration) { m.clock = m.clock.Add(d) }

func TestTheMachineIsMeasuredWithoutLimits(t *testing.T) {
	m := newMachine()
	m.write("proc/stat", "cpu  100 0 100 1000 100 0 0 0 0 0\ncpu0 1 2 3\n")
	m.write("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    250 kB\n")
	m.write("proc/self/cgroup", "1:cpu:/\n0::/a.slice\n")
	m.write("sys/fs/cgroup/a.slice/cpu.max", "max 100000\n")
	m.write("sys/fs/cgroup/a.slice/memory.max", "max\n")
	m.write("proc/net/dev", "Inter-| Receive\n face |bytes\n    lo: 5 0 0 0 0 0 0 0 5 0\n"+
		"  eth0: 1000 0 0 0 0 0 0 0 500 0\n"+
		"  tun0: 7 0 0 0 0 0 0 0 7 0\n")
	m.write("sys/class/net/eth0/speed", "8\n") // a million bytes a second
	m.write("sys/class/net/tun0/speed", "-1\n")
	meter := m.meter()
	assert.Equal(t, Load{}, meter.Measure(), "no interval yet")

	m.write("proc/stat", "cpu  120 0 110 1050 110 0 5 5 99 99\n") // 40 of 100 worked
	m.write("proc/net/dev", "    lo: 9e9 0 0 0 0 0 0 0 9 0\n  eth0: 401000 0 0 0 0 0 0 0 200500 0\n"+
		"  tun0: 1007 0 0 0 0 0 0 0 7 0\n  new0: 7 0 0 0 0 0 0 0 7 0\n")
	m.pass(2 * time.Second)
	want := Load{CPU: 0.4, Memory: 0.75, Network: 0.2, ReceivedBytesPerSecond: 200_500, SentBytesPerSecond: 100_000}
	assert.Equal(t, want, meter.Measure())
	assert.EqualValues(t, 1000<<10, meter.MemoryLimit())

	m.write("proc/stat", "cpu  999 0 110 1050 110 0 5 5 99 99\n")
	m.pass(shortest - 1)
	assert.Equal(t, want, meter.Measure(), "too soon: the last one again")
	m.pass(1)
	assert.InDelta(t, 1, meter.Measure().CPU, 1e-9)
}

func TestLimitsOfTheGroupCount(t *testing.T) {
	m := newMachine()
	m.write("proc/stat", "cpu  100 0 100 1000 100 0 0 0 0 0\n")
	m.write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 250 kB\n")
	m.write("proc/self/cgroup", "0::/job\n")
	m.write("sys/fs/cgroup/job/cpu.max", "50000 100000\n") // half a processor
	m.write("sys/fs/cgroup/job/cpu.stat", "usage_usec 1000000\nuser_usec 1\n")
	m.write("sys/fs/cgroup/job/memory.max", "1000\n")
	m.write("sys/fs/cgroup/job/memory.current", "900\n")
	m.write("sys/fs/cgroup/job/memory.stat", "active_file 1\ninactive_file 300\n")
	meter := m.meter()
	m.write("sys/fs/cgroup/job/cpu.stat", "usage_usec 1400000\n")
	m.pass(time.Second)
	load := meter.Measure()
	assert.InDelta(t, 0.8, load.CPU, 1e-9)
	assert.InDelta(t, 0.6, load.Memory, 1e-9)
	assert.EqualValues(t, 1000, meter.MemoryLimit())
	m.write("sys/fs/cgroup/job/memory.max", "1024001\n")
	assert.EqualValues(t, 1000<<10, meter.MemoryLimit(), "the machine has less")

	m.write("sys/fs/cgroup/job/cpu.max", "max 100000\n") // what was counted before was the group's time
	m.pass(time.Second)
	assert.Zero(t, meter.Measure().CPU)
	m.write("sys/fs/cgroup/job/cpu.max", "100000 100000\n")
	m.pass(time.Second)
	assert.Zero(t, meter.Measure().CPU)
}

func TestWhatTheKernelDoesNotSayIsZero(t *testing.T) {
	for _, c := range []struct{ name, file, text string }{
		{"no files", "x", ""},
		{"short line of processors", "proc/stat", "cpu 1 2 3\n"},
		{"words for numbers", "proc/stat", "cpu a b c d e f g h\n"},
		{"memory without a total", "proc/meminfo", "MemAvailable: 5 kB\n"},
		{"more available than there is", "proc/meminfo", "MemTotal: 5 kB\nMemAvailable: 9 kB\n"},
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
	m.write("proc/net/dev", "eth0: 10 0 0 0 0 0 0 0 2000\n")
	m.pass(time.Second)
	assert.Equal(t, Load{SentBytesPerSecond: 1000}, meter.Measure())
}

func TestThisMachineHasALoad(t *testing.T) {
	if runtime.GOOS != "linux" {
		shared.Missing(t, "the counters are Linux's")
	}
	clock := time.Unix(1e9, 0)
	meter := New(Options{Now: func() time.Time { return clock }})
	clock = clock.Add(time.Second)
	load := meter.Measure()
	assert.Positive(t, load.Memory)
	for _, share := range []float64{load.CPU, load.Memory, load.Network} {
		assert.GreaterOrEqual(t, share, 0.0)
		assert.LessOrEqual(t, share, 1.0)
	}
}
