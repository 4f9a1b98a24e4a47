package worker

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"strconv"
	"strings"

	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/sdk"
)

// Rank names the rank of a job that a worker serves alone: the worker is the trainer's own CPUs.
type Rank struct {
	Job    string // its id
	Number uint32
}

// ParseRank reads JOB/RANK.
func ParseRank(text string) (Rank, error) {
	job, number, found := strings.Cut(text, "/")
	n, err := strconv.ParseUint(number, 10, 32)
	if !found || job == "" || err != nil {
		return Rank{}, fmt.Errorf("rank %.80q: want the job's id and the rank, as ads-0badcafe/3", text)
	}
	return Rank{Job: job, Number: uint32(n)}, nil
}

// ownPrefix begins the names of workers that serve one rank, unless their configuration names them.
const ownPrefix = "own-"

// CompleteFor fills in what the configuration of a worker that serves one rank leaves out: a name of its own, one
// core fewer than the machine has, and any free port of this machine. It returns an error if the control plane is on
// another machine and could not reach the worker.
func (c *Config) CompleteFor(rank Rank) error {
	if c.Name == "" {
		var b [6]byte
		_, _ = rand.Read(b[:]) // never fails
		c.Name = fmt.Sprintf("%s%d-%s", ownPrefix, rank.Number, hex.EncodeToString(b[:]))
	}
	if c.Threads == 0 && c.Drive == "" {
		c.Threads = min(max(runtime.GOMAXPROCS(0)-1, 1), sdk.MaxThreads)
	}
	if len(c.Listen) == 1 && c.Listen[0] == DefaultConfig().Listen[0] {
		c.Listen = []string{"127.0.0.1:0"}
	}
	for _, address := range append(append([]string{}, c.Listen...), c.Advertise...) {
		if !onThisMachine(address) {
			return nil
		}
	}
	for _, member := range c.Control {
		if !onThisMachine(member) {
			return errors.New("listen: the control plane is on another machine, and this worker listens on this machine " +
				"alone: name an address at which the control plane reaches it, and its certificate (role node)")
		}
	}
	return nil
}

// onThisMachine reports whether an address, HOST:PORT, a URL or unix:PATH, leads to this machine from this machine
// only.
func onThisMachine(address string) bool {
	if strings.HasPrefix(address, "unix:") {
		return true
	}
	if base, err := identity.BaseURL(address); err == nil {
		if u, err := url.Parse(base); err == nil && u.Host != "" {
			address = u.Host
		}
	}
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		name = address
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}
