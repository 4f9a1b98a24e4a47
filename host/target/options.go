package target

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/nvme/faults"
	"github.com/millrace/millrace/nvme/tcp"
)

// Defaults of Options.
const (
	DefaultListen       = "127.0.0.1:4420"
	DefaultShutdownTime = 10 * time.Second
)

// Options describe a drive and how it is served. The zero value serves a new drive in memory on loopback, to any host.
type Options struct {
	// Drive is opened by Start and closed by Close. Its Logger is replaced by Options.Logger, and its WrapFlash by that
	// of the fault injector where there is one.
	Drive csd.Options
	// Name is the name of the server of the drive, for processes that find the drive's file open: csd.Owner.Name.
	Name string

	Listen          string // HOST:PORT; port 0 picks one. Default DefaultListen
	DiscoveryListen string // HOST:PORT at which discovery is answered, beside Listen; empty: only at Listen
	// Advertise is the address that discovery names for the drive. Port 0 means the listener's port. The zero value
	// means the listener's address, which then must not be that of every interface.
	Advertise netip.AddrPort
	Referrals []netip.AddrPort // other discovery services that discovery names

	Hosts   []string         // NQNs of the hosts that are served; empty: any host
	AnyHost bool             // confirms that Hosts is empty where Listen is not a loopback address
	Auth    *tcp.AuthOptions // keys with which hosts authenticate; nil: they need not

	MaxConnections     int // queues of hosts that have authenticated, or need not; default tcp.DefaultMaxConnections
	MaxUnauthenticated int // queues of hosts that have not authenticated yet; default tcp.DefaultUnauthenticated

	Namespaces []Namespace    // further namespaces of blocks
	Faults     *faults.Script // faults to inject; nil: none

	ShutdownTime time.Duration // Close gives this time to running commands; default DefaultShutdownTime.
	Logger       *slog.Logger  // default: no log
}

// withDefaults fills in zero fields.
func (o Options) withDefaults() Options {
	if o.Listen == "" {
		o.Listen = DefaultListen
	}
	if o.ShutdownTime == 0 {
		o.ShutdownTime = DefaultShutdownTime
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Drive.Logger = o.Logger
	return o
}

// check refuses options before anything is opened.
func (o Options) check() error {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return &OptionError{"Listen", fmt.Errorf("%q: want HOST:PORT", o.Listen)}
	}
	if len(o.Hosts) == 0 && !o.AnyHost {
		if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
			return &OptionError{"Hosts", fmt.Errorf("%w: %s", ErrOpenToAll, o.Listen)}
		}
	}
	return nil
}

// ErrOpenToAll refuses to serve any host at an address that is not loopback unless Options.AnyHost confirms it.
var ErrOpenToAll = errors.New("any host would be served at an address that is not loopback")

// ErrEveryAddress says that the drive is served at every address of the machine, so that discovery cannot know which of
// them hosts reach it by: Options.Advertise is needed.
var ErrEveryAddress = errors.New("every address of this machine is listened at, and none is advertised")

// OptionError says which field of Options cannot be.
type OptionError struct {
	Option string // the field's name
	Err    error
}

// Error names the field.
func (e *OptionError) Error() string { return fmt.Sprintf("option %s: %v", e.Option, e.Err) }

// Unwrap returns the cause.
func (e *OptionError) Unwrap() error { return e.Err }

// ListenError says that an address cannot be listened at.
type ListenError struct {
	Option  string // the field of Options that names the address: Listen or DiscoveryListen
	Address string
	Err     error
}

// Error names the address and says what to do.
func (e *ListenError) Error() string {
	return fmt.Sprintf("listen at %s: %v; choose another address or port", e.Address, e.Err)
}

// Unwrap returns the cause.
func (e *ListenError) Unwrap() error { return e.Err }
