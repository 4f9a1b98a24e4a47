package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace/bench/cluster"
	"github.com/millrace/millrace/bench/rm"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr/local"
)

// stage has the parts of one workload's measurement: the files, the drives, the processes, and the routes of the ways.
// Parts are opened when the first way needs them.
type stage struct {
	o        *Options
	model    string
	dir      string
	files    []workload.File
	document []byte // the pipeline
	spec     *pipeline.Spec
	rows     int64

	inFiles  *host.Manager // the cpu engine over the files
	onDrive  *host.Manager // the drive of this process
	clusters map[cluster.Transport]*cluster.Cluster
	pythons  []*python
	jobs     int // jobs counts those of the service so far.
	lines    []*line
	closers  []func() error
}

// line is a way in the making of its result.
type line struct {
	way    Way
	route  *route
	result Result
	turns  []turn
}

// route brings mini-batches along a way.
type route struct {
	// pass delivers every mini-batch once; nil if none comes.
	pass func(ctx context.Context, a *account) error
	// flow delivers mini-batches until more reports false.
	flow func(ctx context.Context, more func(rows int, bytes int64) bool) error
	// cluster has the node and the control plane; nil: there is none.
	cluster *cluster.Cluster
	// trainer is the processor time of the process that the mini-batches come to.
	trainer func() time.Duration
	workers int // mini-batches that come at nearly the same time
}

// generate writes the files.
func (s *stage) generate(ctx context.Context) error {
	name := s.model
	if name == rm.RealRM1 {
		name = "rm1"
	}
	m, err := workload.Find(name)
	if err != nil {
		return err
	}
	if s.document, err = pipeline.Document(m.Name); err != nil {
		return err
	}
	if s.spec, err = pipeline.Parse(s.document); err != nil {
		return err
	}
	if s.rows = s.o.Rows; s.rows == 0 {
		if s.rows = 2 << 20; m.Lists {
			s.rows = 64 << 10
		}
	}
	s.o.Progress(fmt.Sprintf("%s: write %s", s.model, quantity.Of(s.rows, "row")))
	out := filepath.Join(s.dir, "data")
	if s.model != rm.RealRM1 {
		s.files, err = workload.Generate(ctx, workload.Options{
			Model: m, Rows: s.rows, Partitions: s.o.Partitions, Out: out, Codec: s.o.Codec, Encoding: s.o.Encoding,
			Seed: s.o.Seed, Coverage: s.o.Coverage,
		})
		return err
	}
	tiled, distinct, err := rm.Tile(s.o.Criteo, s.rows)
	if err != nil {
		return err
	}
	s.o.Progress(fmt.Sprintf("%s: %d different rows", s.model, distinct))
	s.files, _, err = workload.Import(ctx, bytes.NewReader(tiled), workload.ImportOptions{
		Out: out, PartitionRows: (s.rows + int64(s.o.Partitions) - 1) / int64(s.o.Partitions), Codec: s.o.Codec,
		Encoding: s.o.Encoding,
	})
	return err
}

// add opens what a way needs, and adds the way. If this machine cannot have the way, why says the reason.
func (s *stage) add(ctx context.Context, w Way) (why string, err error) {
	var r *route
	kind, transport, _ := strings.Cut(string(w), "-")
	switch kind {
	case "cpu":
		r, err = s.alone(ctx, &s.inFiles, s.openFiles)
	case "drive":
		r, err = s.alone(ctx, &s.onDrive, s.openDrive)
	case "trainer":
		r, err = s.inProcess(ctx)
	case "launcher":
		r, err = s.launcher(ctx, cluster.Transport(transport))
	case "raw":
		r, err = s.raw(ctx, cluster.Transport(transport))
	default:
		r, why, err = s.python(ctx, kind, cluster.Transport(transport))
	}
	if err != nil || why != "" {
		return why, err
	}
	s.lines = append(s.lines, &line{way: w, route: r,
		result: Result{Model: s.model, Way: w, Threads: s.o.Threads, Rounds: s.o.Rounds}})
	return "", nil
}

// openFiles opens the files for the cpu engine.
func (s *stage) openFiles(ctx context.Context) (*host.Manager, error) {
	files := make([]source.Location, len(s.files))
	for i, f := range s.files {
		files[i] = source.ParseLocation(f.Path)
	}
	return local.Open(ctx, local.Config{
		Files:        files,
		DriveOptions: host.DriveOptions{Engine: host.EngineCPU, Threads: s.o.Threads},
	})
}

// openDrive makes the drive of this process and opens it.
func (s *stage) openDrive(ctx context.Context) (*host.Manager, error) {
	uri, err := s.makeDrive(ctx, "local")
	if err != nil {
		return nil, err
	}
	return local.Open(ctx, local.Config{
		Drives:       []string{uri},
		DriveOptions: host.DriveOptions{Engine: host.EngineDrive, Threads: s.o.Threads},
	})
}

// makeDrive makes a drive with a copy of the files.
func (s *stage) makeDrive(ctx context.Context, name string) (uri string, err error) {
	s.o.Progress(fmt.Sprintf("%s: drive of %s", s.model, name))
	return workload.MakeDrive(ctx, filepath.Join(s.dir, name+".flash"), s.files, nil)
}

// manager returns a manager of this process. The first call opens it.
func (s *stage) manager(ctx context.Context, m **host.Manager,
	open func(context.Context) (*host.Manager, error)) (_ *host.Manager, err error) {
	if *m == nil {
		if *m, err = open(ctx); err != nil {
			return nil, err
		}
		s.closers = append(s.closers, (*m).Close)
	}
	return *m, nil
}

// clusterOf returns the control plane and the node that are reached over a transport. The first call starts them.
func (s *stage) clusterOf(ctx context.Context, t cluster.Transport) (*cluster.Cluster, error) {
	if c := s.clusters[t]; c != nil {
		return c, nil
	}
	uri, err := s.makeDrive(ctx, string(t))
	if err != nil {
		return nil, err
	}
	c, err := cluster.Start(ctx, s.o.program(), t)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, c.Close)
	s.clusters[t] = c
	node := cluster.NodeOptions{Name: "n0", Drive: uri, Threads: s.o.Threads,
		Measure: min(s.o.Time, host.DefaultMeasureTime)}
	if _, err := c.StartNode(ctx, node); err != nil {
		return nil, err
	}
	return c, c.AwaitNodes(ctx, 1)
}

// close closes everything, the last that was opened first.
func (s *stage) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	return errors.Join(errs...)
}
