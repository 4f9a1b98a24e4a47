package fabrics

import (
	"fmt"
	"net/netip"
	"strings"
)

// Log page 70h and its sizes in bytes.
const (
	LogDiscovery        = 0x70
	DiscoveryHeaderSize = 1024
	DiscoveryEntrySize  = 1024
)

// SubsystemType is the kind of a subsystem in a discovery log entry.
type SubsystemType uint8

// Kinds of subsystem.
const (
	Referral         SubsystemType = 1 // another discovery subsystem, to be asked too
	NVM              SubsystemType = 2
	CurrentDiscovery SubsystemType = 3 // the discovery subsystem that answers
)

// String names the kind.
func (t SubsystemType) String() string {
	switch t {
	case Referral:
		return "referral"
	case NVM:
		return "nvm"
	case CurrentDiscovery:
		return "discovery"
	}
	return fmt.Sprintf("subsystem type %d", uint8(t))
}

// Values of a discovery entry's fields.
const (
	transportTCP    = 3
	familyIPv4      = 1
	familyIPv6      = 2
	noFlowControlOK = 1 << 2 // TREQ: the host may turn off submission queue flow control
	adminQueueSize  = 32
)

// Entry is a discovery log entry: a subsystem that can be reached over TCP.
type Entry struct {
	Type    SubsystemType
	Port    uint16         // an identifier of the way to the subsystem, not a TCP port
	Address netip.AddrPort // where it listens
	NQN     string
}

// DiscoveryLog is log page 70h.
type DiscoveryLog struct {
	Generation uint64 // changes with the entries
	Entries    []Entry
}

// Marshal writes the page: header, then entries.
func (l *DiscoveryLog) Marshal() []byte {
	b := make([]byte, DiscoveryHeaderSize, DiscoveryHeaderSize+DiscoveryEntrySize*len(l.Entries))
	le.PutUint64(b[0:], l.Generation)
	le.PutUint64(b[8:], uint64(len(l.Entries)))
	for _, e := range l.Entries {
		var x [DiscoveryEntrySize]byte
		x[0], x[1], x[2], x[3] = transportTCP, familyIPv4, byte(e.Type), noFlowControlOK
		ip := e.Address.Addr().Unmap()
		if ip.Is6() {
			x[1] = familyIPv6
		}
		le.PutUint16(x[4:], e.Port)
		le.PutUint16(x[6:], AnyController)
		le.PutUint16(x[8:], adminQueueSize)
		pad(x[32:64], fmt.Sprint(e.Address.Port()))
		copy(x[256:256+MaxNQN], e.NQN)
		pad(x[512:768], ip.WithZone("").String())
		b = append(b, x[:]...)
	}
	return b
}

// pad writes an ASCII field, left justified and padded with spaces.
func pad(b []byte, s string) {
	for i := range b {
		b[i] = ' '
	}
	copy(b, s)
}

// Unmarshal reads a page. b may hold only the header and the first entries. Entries of transports other than TCP, and
// entries whose address cannot be read, are left out.
func (l *DiscoveryLog) Unmarshal(b []byte) error {
	if len(b) < DiscoveryHeaderSize {
		return fmt.Errorf("discovery log: %d bytes where %d belong at least", len(b), DiscoveryHeaderSize)
	}
	*l = DiscoveryLog{Generation: le.Uint64(b)}
	n := le.Uint64(b[8:])
	for b = b[DiscoveryHeaderSize:]; n > 0 && len(b) >= DiscoveryEntrySize; b, n = b[DiscoveryEntrySize:], n-1 {
		if b[0] != transportTCP || b[1] != familyIPv4 && b[1] != familyIPv6 {
			continue
		}
		at, err := netip.ParseAddrPort(joinHostPort(text(b[512:768]), text(b[32:64])))
		if err != nil {
			continue
		}
		l.Entries = append(l.Entries, Entry{SubsystemType(b[2]), le.Uint16(b[4:]), at, nqn(b[256:512])})
	}
	return nil
}

func joinHostPort(host, port string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]:" + port
	}
	return host + ":" + port
}

func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return strings.TrimRight(s, " ")
}
