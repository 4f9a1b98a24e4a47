package faults

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// ErrInjected is wrapped by every error that an injector causes.
var ErrInjected = errors.New("injected fault")

// DefaultBlockSize is the block size of an Injector before SetBlockSize.
const DefaultBlockSize = 512

// Options of an Injector. The zero value works.
type Options struct {
	Logger *slog.Logger // a line for each fault; nil: no log
}

// Stats count the injected faults.
type Stats struct {
	Reads, Writes, Flushes     uint64 // The counters are of operations that failed.
	Delays                     uint64 // commands that were kept
	HeaderDigests, DataDigests uint64 // The counters are of digests that were made wrong.
	Drops                      uint64 // connections
	Absences                   uint64 // times that the drive went away
	Reset                      uint64 // connections refused meanwhile
	Executions                 uint64 // Executions counts those that ended with the status of a rule.
}

// Injector injects the faults of a script into a drive.
type Injector struct {
	log       *slog.Logger
	blockSize atomic.Int64 // bytes of a block
	regions   atomic.Int32 // regions counts the compute device's regions after the first.

	mu                                       sync.Mutex
	script                                   Script
	fail, delay, flip, drops, aways, execute []counter
	stats                                    Stats
	conns                                    map[*conn]struct{}
	back                                     time.Time // when the drive is there again
}

// counter counts the matches of a rule.
type counter struct{ seen, done int64 }

// countMatch counts a match, and reports whether it goes wrong.
func (c *counter) countMatch(n Count) bool {
	c.seen++
	if c.seen <= n.After || n.Times != Always && c.done >= n.Times {
		return false
	}
	c.done++
	return true
}

// New makes an injector of a script. It refuses what Parse refuses.
func New(s *Script, o Options) (*Injector, error) {
	in := &Injector{log: o.Logger, conns: map[*conn]struct{}{}}
	if in.log == nil {
		in.log = slog.New(slog.DiscardHandler)
	}
	in.blockSize.Store(DefaultBlockSize)
	return in, in.Replace(s)
}

// Replace makes the injector follow another script from now on, whose rules count from zero; Stats go on. An empty
// script injects nothing. It refuses what Parse refuses, and then goes on with the script that it has.
func (in *Injector) Replace(s *Script) error {
	if err := s.checkRules(); err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.script = *s
	in.fail, in.delay, in.flip = make([]counter, len(s.Fail)), make([]counter, len(s.Delay)), make([]counter, len(s.Flip))
	in.drops, in.aways = make([]counter, len(s.Drop)), make([]counter, len(s.Away))
	in.execute = make([]counter, len(s.Execute))
	return nil
}

// SetBlockSize sets the bytes of a block, from 1; the default is DefaultBlockSize. A drive's block size is known only
// after its flash was wrapped.
func (in *Injector) SetBlockSize(n int) { in.blockSize.Store(int64(max(n, 1))) }

// Stats returns the counts of injected faults.
func (in *Injector) Stats() Stats {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.stats
}

// GoAway closes all connections, and resets new ones for the time d.
func (in *Injector) GoAway(d time.Duration) {
	in.mu.Lock()
	in.stats.Absences++
	in.back = time.Now().Add(d)
	conns := make([]*conn, 0, len(in.conns))
	for c := range in.conns {
		conns = append(conns, c)
	}
	in.mu.Unlock()
	in.log.Warn("fault: the drive goes away", "for", d, "connections", len(conns))
	for _, c := range conns {
		_ = c.Close()
	}
}

// Listener wraps the listener from which a target accepts connections. It also serves GoAway where the script has no
// rule for connections.
func (in *Injector) Listener(l net.Listener) net.Listener { return &listener{l, in} }

type listener struct {
	net.Listener
	in *Injector
}

// Accept waits for a connection while the drive is there.
func (l *listener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.in.wrapConnection(nc); c != nil {
			return c, nil
		}
		if t, ok := nc.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
		_ = nc.Close()
	}
}

// wrapConnection wraps a connection; nil while the drive is away.
func (in *Injector) wrapConnection(nc net.Conn) *conn {
	in.mu.Lock()
	defer in.mu.Unlock()
	if time.Now().Before(in.back) {
		in.stats.Reset++
		return nil
	}
	c := newFaultyConn(in, nc)
	in.conns[c] = struct{}{}
	return c
}

func (in *Injector) forgetConnection(c *conn) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.conns, c)
}

// countCommand counts a command that arrives. It returns for how long the command is delayed, and for how long the
// drive goes away with it.
func (in *Injector) countCommand(queue int32, cmd *nvme.Command) (keep, away time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range in.script.Away {
		a, c := &in.script.Away[i], &in.aways[i]
		if a.Times != Always && c.done >= a.Times {
			continue
		}
		if c.seen++; c.seen == a.Command {
			c.seen, c.done = 0, c.done+1
			away = max(away, a.For)
		}
	}
	if away > 0 {
		return 0, away
	}
	for i := range in.script.Delay {
		d := &in.script.Delay[i]
		switch {
		case !d.Queue.includes(queue), d.Opcode != AnyOpcode && uint8(d.Opcode) != cmd.Opcode():
		case d.Blocks && cmd.NSID() >= cs.NamespaceSLM && cmd.NSID() <= cs.RegionNamespace(int(in.regions.Load())):
		case in.delay[i].countMatch(d.Count):
			keep = max(keep, d.By)
		}
	}
	if keep > 0 {
		in.stats.Delays++
	}
	return keep, 0
}

// digestsToFlip returns which digests of a PDU are made wrong.
func (in *Injector) digestsToFlip(queue int32, dir Direction, header, data bool) (flipHeader, flipData bool) {
	if !header && !data {
		return false, false
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range in.script.Flip {
		f := &in.script.Flip[i]
		carries, flipped, stat := header, &flipHeader, &in.stats.HeaderDigests
		if f.Digest == DataDigest {
			carries, flipped, stat = data, &flipData, &in.stats.DataDigests
		}
		if carries && f.Direction == dir && f.Queue.includes(queue) && in.flip[i].countMatch(f.Count) && !*flipped {
			*flipped = true
			*stat++
		}
	}
	return flipHeader, flipData
}

// dropsConnection reports whether a connection ends with its PDU number n, and whether in the middle of it.
func (in *Injector) dropsConnection(queue int32, dir Direction, n int64) (drop, torn bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range in.script.Drop {
		d, c := &in.script.Drop[i], &in.drops[i]
		if d.PDU == n && d.Direction == dir && d.Queue.includes(queue) && c.countMatch(Count{Times: d.Times}) {
			drop, torn = true, torn || d.Torn
		}
	}
	if drop {
		in.stats.Drops++
	}
	return drop, torn
}
