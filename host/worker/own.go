package worker

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"

	apiv1 "github.com/millrace/millrace/host/api/v1"
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

// CompleteFor fills in what the configuration of a worker that serves one rank leaves out: a name of its own, one
// core fewer than the machine has, and any free port of this machine. With a launcher's certificate the worker listens
// and is called as the certificate says. CompleteFor returns an error if the certificate is not enough for the worker,
// or if the control plane is on another machine and could not reach the worker.
func (c *Config) CompleteFor(rank Rank) error {
	own, err := c.identity().Own()
	if err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	if c.Name == "" && own.Role == identity.Node {
		c.Name = own.Name
	}
	if c.Name == "" {
		var b [6]byte
		_, _ = rand.Read(b[:]) // never fails
		c.Name = fmt.Sprintf("%s%d-%s", apiv1.OwnWorkerPrefix, rank.Number, hex.EncodeToString(b[:]))
	}
	if c.Threads == 0 && c.Drive == "" {
		c.Threads = min(max(runtime.GOMAXPROCS(0)-1, 1), sdk.MaxThreads)
	}
	if err := c.checkRole(own); err != nil {
		return err
	}
	if len(c.Listen) == 1 && c.Listen[0] == DefaultConfig().Listen[0] {
		c.Listen = []string{"127.0.0.1:0"}
		if own.Role == identity.Launcher && len(c.Advertise) == 0 {
			if err := c.listenAsCertified(); err != nil {
				return err
			}
		}
	}
	for _, address := range append(append([]string{}, c.Listen...), c.Advertise...) {
		if !onThisMachine(address) {
			return nil
		}
	}
	if !c.controlHere() {
		return errors.New("listen: the control plane is on another machine, and this worker listens on this machine " +
			"alone: name an address at which the control plane reaches it, and its certificate")
	}
	return nil
}

// identity returns the TLS files as package identity takes them.
func (c *Config) identity() identity.Options {
	return identity.Options{Cert: c.TLS.Cert, Key: c.TLS.Key, CA: c.TLS.CA}
}

// checkRole returns an error unless a certificate is enough for a worker of one rank. The zero identity is that of a
// worker without a certificate.
func (c *Config) checkRole(own identity.Identity) error {
	switch own.Role {
	case "", identity.Node:
		return nil
	case identity.Launcher:
	default:
		return fmt.Errorf("tls: the certificate is of %s, and the worker of a rank needs one of the role launcher: millrace "+
			"pki issue --role launcher --name OWNER --host HOST", own)
	}
	if !strings.HasPrefix(c.Name, apiv1.OwnWorkerPrefix) {
		return fmt.Errorf("name: %s: with a launcher's certificate a worker's name begins with %s: change it, leave it out, "+
			"or give the worker a certificate of the role node", c.Name, apiv1.OwnWorkerPrefix)
	}
	if len(c.Partitions) > 0 {
		return errLauncherPartitions
	}
	return nil
}

// errLauncherPartitions refuses partitions in the configuration of a worker with a launcher's certificate.
var errLauncherPartitions = errors.New("partitions: with a launcher's certificate a worker announces none: name " +
	"files " +
	"of this machine in local, or give the worker a certificate of the role node")

// controlHere reports whether every member of the control plane is on this machine.
func (c *Config) controlHere() bool {
	for _, member := range c.Control {
		if !onThisMachine(member) {
			return false
		}
	}
	return true
}

// listenAsCertified chooses the address at which a worker with a launcher's certificate listens and is called: a host
// of the certificate, at any free port. It takes a host of this machine alone if the control plane is here. A worker
// whose certificate has a name listens at every address of the machine, because its own hosts file often gives a
// machine's name another address than other machines know; callers show a certificate in any case.
func (c *Config) listenAsCertified() error {
	hosts, err := c.identity().Hosts()
	if err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	i := -1
	if c.controlHere() {
		i = slices.IndexFunc(hosts, onThisMachine)
	}
	if i < 0 {
		i = slices.IndexFunc(hosts, func(h string) bool { return !onThisMachine(h) && !strings.Contains(h, "*") })
	}
	if i < 0 {
		return fmt.Errorf("tls: the certificate %s names no host at which this machine is called from the control plane: "+
			"issue one with millrace pki issue --role launcher --name NAME --host HOST, the name or address of this machine; "+
			"or name listen, advertise and tls in the worker's configuration", c.TLS.Cert)
	}
	host := hosts[i]
	c.Advertise = []string{"https://" + net.JoinHostPort(host, "0")}
	switch {
	case host == "localhost":
	case net.ParseIP(host) != nil:
		c.Listen = []string{net.JoinHostPort(host, "0")}
	default:
		c.Listen = []string{":0"}
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
