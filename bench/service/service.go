package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/bench/cluster"
	"github.com/millrace/millrace/internal/scratch"
	"github.com/millrace/millrace/sdk"
)

// ErrOptions says that Options ask for something that cannot be measured.
var ErrOptions = errors.New("options")

// Options select the measurement. Command is required; the rest may be zero.
type Options struct {
	// Command runs millrace; the arguments of a subcommand are appended to it.
	Command []string
	// Env is added to its environment.
	Env []string

	Transports []cluster.Transport // empty: all
	Nodes      []int               // 1 to MaxNodes; empty: 1, 2, 4
	Rows       int                 // 0 means 16,384 rows of a mini-batch, which are 4.3 MB.
	DriveRows  int64               // 0 means 2^20 rows on each real node's drive; a negative number leaves real nodes out.
	Threads    int                 // engine threads of each real node's drive; 0 means 1
	Time       time.Duration       // Each cell takes this time, and raw connections as long again; 0 means 2 s.
	Splits     int                 // 0 means 10^6 splits of the ledger's job; a negative number leaves the ledger out.
	// LeaderTTL is what the control plane that loses its leader has; 0 means its default, 5 s. A negative one leaves
	// failover out.
	LeaderTTL time.Duration
	Progress  func(string) // receives each step in words, if not nil
}

// Bounds of Options.
const (
	MaxNodes  = 64
	MaxRows   = 1 << 20
	MaxSplits = 16 << 20
	// MaxDriveRows keeps a drive's file below 20 GB.
	MaxDriveRows = 64 << 20
)

// Wire is a cell of the table.
type Wire struct {
	Transport       cluster.Transport `json:"transport"`
	Nodes           int               `json:"nodes"`
	Kind            Kind              `json:"node_kind"`
	MiniBatchBytes  int64             `json:"mini_batch_bytes"`
	BytesPerSecond  float64           `json:"bytes_per_second"`
	CPUSecondsPerGB float64           `json:"cpu_seconds_per_gb"`
	RawPerSecond    float64           `json:"raw_bytes_per_second"`
	RawCPUPerGB     float64           `json:"raw_cpu_seconds_per_gb"`
	Ratio           float64           `json:"ratio"` // Ratio is that of the rates.
	// Connections is how many nodes wrote to at once. Without nodes there were as many.
	Connections int `json:"connections"`
	// Buffers is how many buffers the trainer's mini-batches lay in. Raw blocks are read into as many.
	Buffers int `json:"buffers"`
	// Of real nodes: half the width of the 95 % confidence interval of BytesPerSecond, as a share of it, and whether it
	// was small enough when the measurement ended (package steadyrate). Of CPUSecondsPerGB, NodeCPUPerGB was spent in
	// the nodes' processes. Ceiling is the share of the stand-ins' rate in the same cell.
	Spread       float64 `json:"spread_share,omitempty"`
	Settled      bool    `json:"settled"`
	NodeCPUPerGB float64 `json:"node_cpu_seconds_per_gb,omitempty"`
	Ceiling      float64 `json:"stand_in_share,omitempty"`
}

// Ledger holds the rates that the control plane sustains.
type Ledger struct {
	Splits  int     `json:"splits"`
	Seconds float64 `json:"seconds"`
	// PerSecond counts splits whose acknowledgement is durable.
	PerSecond        float64 `json:"acknowledgements_per_second"`
	ResidentBytes    int64   `json:"control_plane_resident_bytes"`
	MaxResidentBytes int64   `json:"control_plane_max_resident_bytes"`
}

// Failover is the cost of a leader's death.
type Failover struct {
	LeaderTTLSeconds float64 `json:"leader_ttl_seconds"`
	Seconds          float64 `json:"seconds"` // until an acknowledgement was durable again
	StallSeconds     float64 `json:"longest_wait_seconds"`
	MiniBatches      int     `json:"mini_batches"` // MiniBatches is how many the trainer took meanwhile.
}

// Kind is the kind of a cell's nodes.
type Kind string

// The kinds.
const (
	// Agent is a real storage node: a process with the agent of package host/node, which makes the mini-batches on its
	// drive.
	Agent Kind = "agent"
	// StandIn is a node of this package, which holds a mini-batch in memory and preprocesses nothing: the ceiling.
	StandIn Kind = "stand-in"
)

// NodeKinds says in every report what the two kinds are.
const NodeKinds = "agents are real storage nodes, whose drives preprocess; stand-ins hold mini-batches in memory and " +
	"preprocess nothing: they are the ceiling of what the service can carry"

// Result is all that was measured.
type Result struct {
	Kinds    string    `json:"node_kinds"` // always NodeKinds
	Wire     []Wire    `json:"wire"`
	Ledger   *Ledger   `json:"ledger,omitempty"`
	Failover *Failover `json:"failover,omitempty"`
}

func (o *Options) defaults() error {
	if len(o.Transports) == 0 {
		o.Transports = cluster.Transports()
	}
	if len(o.Nodes) == 0 {
		o.Nodes = []int{1, 2, 4}
	}
	if o.Rows == 0 {
		o.Rows = 16 << 10
	}
	if o.DriveRows == 0 {
		o.DriveRows = 1 << 20
	}
	if o.Threads == 0 {
		o.Threads = 1
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
		if !slices.Contains(cluster.Transports(), t) {
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
	case o.Threads < 1 || o.Threads > sdk.MaxThreads || o.DriveRows > MaxDriveRows:
		return fmt.Errorf("%w: %d engine threads, %d rows on a drive: want 1 to %d threads, at most %d rows",
			ErrOptions, o.Threads, o.DriveRows, sdk.MaxThreads, MaxDriveRows)
	case o.LeaderTTL > 0 && o.LeaderTTL < time.Second:
		return fmt.Errorf("%w: a leader's time to live of %v: want a second at least", ErrOptions, o.LeaderTTL)
	}
	return nil
}

// program is how a process is started.
func (o *Options) program() cluster.Program { return cluster.Program{Command: o.Command, Env: o.Env} }

// Run measures.
func Run(ctx context.Context, o Options) (_ *Result, err error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	temporary, err := scratch.Make("", "millrace-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, temporary.Close()) }()
	dir := temporary.Path
	r := &Result{Kinds: NodeKinds, Wire: []Wire{}}
	data, err := o.generate(ctx, dir)
	if err != nil {
		return nil, err
	}
	for _, t := range o.Transports {
		for _, n := range o.Nodes {
			ceiling, err := o.wire(ctx, t, n)
			if err != nil {
				return nil, fmt.Errorf("%s, %d stand-ins: %w", t, n, err)
			}
			if o.DriveRows > 0 {
				w, err := o.agents(ctx, *ceiling, data)
				if err != nil {
					return nil, fmt.Errorf("%s, %d nodes: %w", t, n, err)
				}
				r.Wire = append(r.Wire, *w)
			}
			r.Wire = append(r.Wire, *ceiling)
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
