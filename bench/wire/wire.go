package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/nvme/controller"
)

// Operation is the kind of a cell's commands.
type Operation string

// The operations, each with its size of a command.
const (
	RandomRead      Operation = "random_read"      // 4 KiB
	SequentialRead  Operation = "sequential_read"  // 1 MiB
	SequentialWrite Operation = "sequential_write" // 1 MiB
)

// Operations are all there are, in the order of the table.
func Operations() []Operation { return []Operation{RandomRead, SequentialRead, SequentialWrite} }

// blockBytes is the size of an operation's commands.
func (o Operation) blockBytes() int {
	if o == RandomRead {
		return 4 << 10
	}
	return 1 << 20
}

// Limits of Options.
const (
	MaxDepth       = controller.MaxDepth // commands outstanding on a connection
	MaxConnections = 16
	MinDrive       = 1 << 20
)

// ErrOptions says that Options ask for something that cannot be measured.
var ErrOptions = errors.New("options")

// Options select the cells to measure: every combination of the lists. The zero value is the whole table.
type Options struct {
	Operations  []Operation // empty: all
	Depths      []int       // commands outstanding on each connection, 1 to MaxDepth; empty: 1, 32, 128
	Connections []int       // 1 to MaxConnections; empty: 1 and 2
	Digests     []bool      // empty: off and on
	Time        time.Duration
	DriveBytes  int64 // size of the drive, a multiple of MinDrive; 0 means 256 MiB
	// NoFlowControl turns submission queue flow control off, so that a read needs no response capsule behind its data.
	NoFlowControl bool
	// Progress, if not nil, receives each step in words.
	Progress func(string)
}

func (o *Options) defaults() error {
	if len(o.Operations) == 0 {
		o.Operations = Operations()
	}
	if len(o.Depths) == 0 {
		o.Depths = []int{1, 32, 128}
	}
	if len(o.Connections) == 0 {
		o.Connections = []int{1, 2}
	}
	if len(o.Digests) == 0 {
		o.Digests = []bool{false, true}
	}
	if o.Time == 0 {
		o.Time = time.Second
	}
	if o.DriveBytes == 0 {
		o.DriveBytes = 256 << 20
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	for _, op := range o.Operations {
		if op != RandomRead && op != SequentialRead && op != SequentialWrite {
			return fmt.Errorf("%w: operation %q: want %s, %s or %s", ErrOptions, op, RandomRead, SequentialRead,
				SequentialWrite)
		}
	}
	for _, d := range o.Depths {
		if d < 1 || d > MaxDepth {
			return fmt.Errorf("%w: depth %d: want 1 to %d", ErrOptions, d, MaxDepth)
		}
	}
	for _, n := range o.Connections {
		if n < 1 || n > MaxConnections {
			return fmt.Errorf("%w: %d connections: want 1 to %d", ErrOptions, n, MaxConnections)
		}
	}
	if o.Time < 0 {
		return fmt.Errorf("%w: time %v is below 0", ErrOptions, o.Time)
	}
	if o.DriveBytes < MinDrive || o.DriveBytes%MinDrive != 0 {
		return fmt.Errorf("%w: a drive of %d bytes: want a multiple of %d", ErrOptions, o.DriveBytes, MinDrive)
	}
	return nil
}

// Result is one cell of the table.
type Result struct {
	Operation             Operation `json:"operation"`
	BlockBytes            int       `json:"block_bytes"`
	Depth                 int       `json:"depth"` // on each connection
	Connections           int       `json:"connections"`
	Digests               bool      `json:"digests"`
	Commands              int64     `json:"commands"`
	ElapsedSeconds        float64   `json:"elapsed_seconds"`
	IOPS                  float64   `json:"iops"`
	BytesPerSecond        float64   `json:"bytes_per_second"`
	RawTCPBytesPerSecond  float64   `json:"raw_tcp_bytes_per_second"`
	Ratio                 float64   `json:"ratio"` // Ratio divides bytes a second by those of raw TCP.
	CPUSecondsPerGB       float64   `json:"cpu_seconds_per_gb"`
	RawTCPCPUSecondsPerGB float64   `json:"raw_tcp_cpu_seconds_per_gb"`
	CPUSecondsPerCommand  float64   `json:"cpu_seconds_per_command"`
	AllocsPerCommand      float64   `json:"allocs_per_command"`
}

// cell is a place in the table.
type cell struct {
	op          Operation
	depth       int
	connections int
	digests     bool
}

// outstanding is how many commands there are at a time.
func (c cell) outstanding() int { return c.depth * c.connections }

func (c cell) String() string {
	digests := "off"
	if c.digests {
		digests = "on"
	}
	return fmt.Sprintf("%s at depth %d, connections %d, digests %s", c.op, c.depth, c.connections, digests)
}

// Run measures every cell in turn. The error is ErrOptions', ctx's or the drive's; the results before it are returned
// with it.
func Run(ctx context.Context, o Options) (results []Result, err error) {
	if err := o.defaults(); err != nil {
		return nil, fmt.Errorf("bench wire: %w", err)
	}
	s, err := newStage(&o)
	if err != nil {
		return nil, fmt.Errorf("bench wire: %w", err)
	}
	defer func() {
		if cerr := s.close(); cerr != nil {
			err = errors.Join(err, fmt.Errorf("bench wire: %w", cerr))
		}
	}()
	for _, digests := range o.Digests {
		for _, connections := range o.Connections {
			for _, op := range o.Operations {
				for _, depth := range o.Depths {
					c := cell{op, depth, connections, digests}
					o.Progress(c.String())
					r, err := s.measure(ctx, c)
					if err != nil {
						return results, fmt.Errorf("bench wire: %s: %w", c, err)
					}
					results = append(results, r)
				}
			}
		}
	}
	return results, nil
}
