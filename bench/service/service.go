package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// ErrOptions says that Options ask for something that cannot be measured.
var ErrOptions = errors.New("options")

// Transport is how a trainer reaches nodes.
type Transport string

// The transports.
const (
	Unix Transport = "unix" // sockets of this machine
	TCP  Transport = "tcp"  // loopback, in clear
	TLS  Transport = "tls"  // loopback, mutual TLS 1.3
)

// Transports are all there are, in the order of the table.
func Transports() []Transport { return []Transport{Unix, TCP, TLS} }

// Options select the measurement. Command is required; the rest may be zero.
type Options struct {
	// Command runs millrace; the arguments of a subcommand are appended to it.
	Command []string
	// Env is added to its environment.
	Env []string

	Transports []Transport   // empty: all
	Nodes      []int         // 1 to MaxNodes; empty: 1, 2, 4
	Rows       int           // of a mini-batch; 0 means 16,384, which are 4.3 MB
	Time       time.Duration // of each cell, raw connections as long again; 0 means 2 s
	Splits     int           // of the ledger's job; 0 means 10^6, negative leaves the ledger out
	// of the control plane that loses its leader; 0 means its default, 5 s; negative leaves failover out
	LeaderTTL time.Duration
	Progress  func(string) // receives each step in words, if not nil
}

// Bounds of Options.
const (
	MaxNodes  = 64
	MaxRows   = 1 << 20
	MaxSplits = 16 << 20
)

// Wire is a cell of the table.
type Wire struct {
	Transport       Transport `json:"transport"`
	Nodes           int       `json:"nodes"`
	MiniBatchBytes  int64     `json:"mini_batch_bytes"`
	BytesPerSecond  float64   `json:"bytes_per_second"`
	CPUSecondsPerGB float64   `json:"cpu_seconds_per_gb"`
	RawPerSecond    float64   `json:"raw_bytes_per_second"`
	RawCPUPerGB     float64   `json:"raw_cpu_seconds_per_gb"`
	Ratio           float64   `json:"ratio"`       // of the rates
	Connections     int       `json:"connections"` // that nodes wrote to at once; raw, as many
	// that the trainer's mini-batches lay in; raw blocks are read into as many
	Buffers int `json:"buffers"`
}

// Ledger holds the rates that the control plane sustains.
type Ledger struct {
	Splits           int     `json:"splits"`
	Seconds          float64 `json:"seconds"`
	PerSecond        float64 `json:"acknowledgements_per_second"` // of splits, durable
	ResidentBytes    int64   `json:"control_plane_resident_bytes"`
	MaxResidentBytes int64   `json:"control_plane_max_resident_bytes"`
}

// Failover is the cost of a leader's death.
type Failover struct {
	LeaderTTLSeconds float64 `json:"leader_ttl_seconds"`
	Seconds          float64 `json:"seconds"` // until an acknowledgement was durable again
	StallSeconds     float64 `json:"longest_wait_seconds"`
	MiniBatches      int     `json:"mini_batches"` // that the trainer took meanwhile
}

// StandInNodes states in every report that the nodes are stand-ins.
const StandInNodes = "stand-ins: " +
	"they hold mini-batches in memory and preprocess nothing, so these are the wire's figures and " +
	"a ceiling for real storage nodes"

// Result is all that was measured.
type Result struct {
	Nodes    string    `json:"nodes"` // the kind of nodes: always StandInNodes
	Wire     []Wire    `json:"wire"`
	Ledger   *Ledger   `json:"ledger,omitempty"`
	Failover *Failover `json:"failover,omitempty"`
}

func (o *Options) defaults() error {
	if len(o.Transports) == 0 {
		o.Transports = Transports()
	}
	if len(o.Nodes) == 0 {
		o.Nodes = []int{1, 2, 4}
	}
	if o.Rows == 0 {
		o.Rows = 16 << 10
	}
	if o.Time == 0 {
		o.Time = 2 * time.Second
	}
	if o.Splits == 0 {
		o.Splits = 1_000_000
	}
	if o.LeaderTTL == 0 {
		o.LeaderTTL = 5 * time.Second
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	for _, t := range o.Transports {
		if !slices.Contains(Transports(), t) {
			return fmt.Errorf("%w: transport %q: want unix, tcp or tls", ErrOptions, t)
		}
	}
	for _, n := range o.Nodes {
		if n < 1 || n > MaxNodes {
			return fmt.Errorf("%w: %d nodes: want 1 to %d", ErrOptions, n, MaxNodes)
		}
	}
	switch {
	case len(o.Command) == 0:
		return fmt.Errorf("%w: no command that runs a control plane", ErrOptions)
	case o.Rows < 1 || o.Rows > MaxRows || o.Time < 0 || o.Splits > MaxSplits:
		return fmt.Errorf("%w: %d rows, %v, %d splits: want 1 to %d rows, a time above 0, at most %d splits",
			ErrOptions, o.Rows, o.Time, o.Splits, MaxRows, MaxSplits)
	case o.LeaderTTL > 0 && o.LeaderTTL < time.Second:
		return fmt.Errorf("%w: a leader's time to live of %v: want a second at least", ErrOptions, o.LeaderTTL)
	}
	return nil
}

// Run measures.
func Run(ctx context.Context, o Options) (_ *Result, err error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "millrace-bench")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &Result{Nodes: StandInNodes, Wire: []Wire{}}
	for _, t := range o.Transports {
		for _, n := range o.Nodes {
			w, err := o.wire(ctx, t, n)
			if err != nil {
				return nil, fmt.Errorf("%s, %d nodes: %w", t, n, err)
			}
			r.Wire = append(r.Wire, *w)
		}
	}
	if o.Splits > 0 {
		if r.Ledger, err = o.ledger(ctx); err != nil {
			return nil, fmt.Errorf("ledger of %d splits: %w", o.Splits, err)
		}
	}
	if o.LeaderTTL > 0 {
		if r.Failover, err = o.failover(ctx); err != nil {
			return nil, fmt.Errorf("failover: %w", err)
		}
	}
	return r, nil
}
