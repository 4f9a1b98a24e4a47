package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
)

// maxKnown bounds the partitions of a job whose places are remembered. The control plane is asked for others.
const maxKnown = 4096

// PartitionsOptions configure Partitions. All but Local and Launcher are required.
type PartitionsOptions struct {
	Client *http.Client  // towards nodes
	Stores source.Opener // Stores hold the partitions that have a URL.
	Cache  *source.Cache // bounds the memory for partitions, and the requests
	// Locate asks the control plane where partitions of a job lie, by name.
	Locate func(ctx context.Context, job dataset.Digest, partitions []string) ([]api.Source, error)
	Drive  string     // the name of the worker's drive, for errors
	Local  LocalFiles // partitions in files of this machine
	// Launcher says that the worker shows a launcher's certificate, which nodes do not give partitions to.
	Launcher bool
	Log      *slog.Logger
}

// Partitions reads the partitions of jobs from the nodes and stores where they lie. It implements host.Elsewhere.
type Partitions struct {
	options  PartitionsOptions
	counters counters

	mu               sync.Mutex
	known            map[dataset.Digest]map[string]api.Source // by job and partition
	openPartitions   map[*remotePartition]struct{}
	closedStatistics source.Statistics // Partitions that were closed have these statistics.
}

var _ host.Elsewhere = (*Partitions)(nil)

// NewPartitions makes Partitions that know no place yet.
func NewPartitions(o PartitionsOptions) *Partitions {
	return &Partitions{
		options: o, known: map[dataset.Digest]map[string]api.Source{}, openPartitions: map[*remotePartition]struct{}{},
	}
}

// statistics returns what all partitions that were opened have read.
func (p *Partitions) statistics() source.Statistics {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := p.closedStatistics
	for r := range p.openPartitions {
		sum.Add(r.Statistics())
	}
	return sum
}

// Learn implements host.Elsewhere.
func (p *Partitions) Learn(job dataset.Digest, sources []api.Source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.known[job]
	if known == nil {
		known = map[string]api.Source{}
		p.known[job] = known
	}
	for _, s := range sources {
		for name := range known {
			if len(known) < maxKnown {
				break
			}
			delete(known, name) // any partition: the control plane knows its places
		}
		known[s.Partition] = s
	}
}

// OwnFiles implements host.Elsewhere.
func (p *Partitions) OwnFiles(m *dataset.Manifest) []int { return p.options.Local.places(m) }

// Forget implements host.Elsewhere.
func (p *Partitions) Forget(job dataset.Digest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, job)
}

// locate asks the control plane where a partition lies, and remembers the answer while the job is prepared.
func (p *Partitions) locate(ctx context.Context, job dataset.Digest, name string) (api.Source, error) {
	list, err := p.options.Locate(ctx, job, []string{name})
	if err != nil {
		return api.Source{}, err
	}
	if len(list) != 1 || list[0].Partition != name {
		return api.Source{}, fmt.Errorf("the control plane answers for other partitions than %s", name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.known[job]; known != nil && (known[name].Partition != "" || len(known) < maxKnown) {
		known[name] = list[0]
	}
	return list[0], nil
}

// Open implements host.Elsewhere. Nothing is read yet.
func (p *Partitions) Open(_ context.Context, job dataset.Digest, want dataset.Partition) (host.RemotePartition, error) {
	p.mu.Lock()
	known := p.known[job][want.Name]
	p.mu.Unlock()
	at := newPlaces(p, job, want, known)
	r := &remotePartition{Reader: p.options.Cache.NewReader(at), places: at}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.openPartitions[r] = struct{}{}
	return r, nil
}

// stopCounting ends the counting of a partition's reads.
func (p *Partitions) stopCounting(r *remotePartition) {
	read := r.Statistics()
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.openPartitions[r]; ok {
		delete(p.openPartitions, r)
		p.closedStatistics.Add(read)
	}
}

// remotePartition is a partition that is read where it lies. Its errors wrap host.ErrSource, or are a
// *host.ChangedError.
type remotePartition struct {
	*source.Reader
	places *places
}

// ReadAt implements io.ReaderAt.
func (r *remotePartition) ReadAt(b []byte, off int64) (int, error) {
	return r.ReadAtContext(context.Background(), b, off)
}

// ReadAtContext implements partition.Reader.
func (r *remotePartition) ReadAtContext(ctx context.Context, b []byte, off int64) (int, error) {
	n, err := r.Reader.ReadAtContext(ctx, b, off)
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		err = r.readError(err)
	}
	return n, err
}

// readError turns the error of a read into an error that package host knows: a *host.ChangedError, or an error that
// wraps host.ErrSource.
func (r *remotePartition) readError(err error) error {
	var changed *source.ChangedError
	if errors.As(err, &changed) {
		return &host.ChangedError{Drive: r.places.partitions.options.Drive, Partition: r.places.want.Name, Why: err.Error()}
	}
	return fmt.Errorf("%w: %w", host.ErrSource, err)
}

// CheckUnchanged implements host.RemotePartition.
func (r *remotePartition) CheckUnchanged(ctx context.Context) error {
	err := r.Failed()
	if err == nil {
		err = r.places.checkUnchanged(ctx)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	return r.readError(err)
}

// Close implements host.RemotePartition.
func (r *remotePartition) Close() error {
	err := r.Reader.Close()
	r.places.partitions.stopCounting(r)
	return errors.Join(err, r.places.Close())
}
