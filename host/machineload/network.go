package machineload

import (
	"path"
	"strconv"
	"strings"
)

// traffic counts the bytes that went through an interface, or that a process has read and written, until now.
type traffic struct {
	received, sent uint64  // bytes
	rate           float64 // rate returns the bytes a second of an interface in either direction; 0: not known.
}

// The columns of /proc/net/dev behind the interface's name (proc_pid_net(5)).
const (
	columnReceived = 0
	columnSent     = 8
)

// readTraffic reads every interface but loopback.
func (m *Meter) readTraffic() map[string]traffic {
	links := map[string]traffic{}
	for line := range strings.Lines(m.read("proc/net/dev")) {
		name, counters, found := strings.Cut(line, ":")
		words := strings.Fields(counters)
		if name = strings.TrimSpace(name); !found || name == "lo" || len(words) <= columnSent {
			continue
		}
		received, err := strconv.ParseUint(words[columnReceived], 10, 64)
		if err != nil {
			continue
		}
		sent, err := strconv.ParseUint(words[columnSent], 10, 64)
		if err != nil {
			continue
		}
		links[name] = traffic{received: received, sent: sent, rate: m.readLinkRate(name)}
	}
	return links
}

// readMoved reads how many bytes this process has read and written (proc_pid_io(5)).
func (m *Meter) readMoved() (t traffic) {
	text := m.read("proc/self/io")
	t.received, _ = field(text, "rchar:")
	t.sent, _ = field(text, "wchar:")
	return t
}

// readLinkRate returns the rate of an interface in bytes a second, 0 where the kernel does not know it (-1, or an
// error, for interfaces without a wire).
func (m *Meter) readLinkRate(name string) float64 {
	megabits, err := strconv.ParseInt(strings.TrimSpace(m.read(path.Join("sys/class/net", name, "speed"))), 10, 32)
	if err != nil || megabits <= 0 {
		return 0
	}
	return float64(megabits) * 1e6 / 8
}
