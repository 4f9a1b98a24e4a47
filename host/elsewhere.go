package host

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
)

// ErrFormat says that a drive of reach any cannot read partitions of a job's format: it reads ranges of Parquet files.
var ErrFormat = errors.New("only Parquet partitions are read from elsewhere")

// ErrSource says that a partition could not be read at any place where it lies. It may be read later.
var ErrSource = errors.New("the partition cannot be read where it lies")

// Elsewhere opens the partitions of jobs, which lie on other nodes or in stores. It is safe for concurrent use.
type Elsewhere interface {
	// Learn notes where partitions of a job can be read.
	Learn(job dataset.Digest, sources []api.Source)
	// Open opens a partition of a job. Open checks at least the length of the returned partition against the job's
	// manifest.
	Open(ctx context.Context, job dataset.Digest, want dataset.Partition) (RemotePartition, error)
	// OwnFiles returns the places in a manifest of the partitions that files of this machine hold, ascending.
	OwnFiles(manifest *dataset.Manifest) []int
	// Forget drops everything that was learned of a job.
	Forget(job dataset.Digest)
}

// RemotePartition is the bytes of a partition that lies elsewhere. It is safe for concurrent use.
type RemotePartition interface {
	partition.AheadReader
	// Describe passes on where the opened partition's column chunks lie.
	Describe(p *partition.Partition)
	// CheckUnchanged returns an error that wraps ErrChanged when the partition's bytes are not those that were opened.
	CheckUnchanged(ctx context.Context) error
	// Close ends the reads of the partition and frees what it holds.
	Close() error
}

// OpenElsewhere makes a drive of reach any: it holds no partition, and makes any split of any job, from partitions that
// it reads elsewhere. This machine's CPU computes, or the drive that DriveOptions.Accelerator names: this host stores
// the windows in that drive's memory. Close does not close from.
func OpenElsewhere(ctx context.Context, o DriveOptions, from Elsewhere) (*Drive, error) {
	switch {
	case o.Name == "":
		return nil, errors.New("a drive of reach any wants a name")
	case o.Source != 0 && o.Source != program.Parquet:
		return nil, fmt.Errorf("drive %s: %w", o.Name, ErrFormat)
	}
	d := &Drive{name: o.Name, o: o}
	err := d.openAccelerator(ctx)
	if err == nil {
		err = d.chooseEngine()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("drive %s: %w", o.Name, err), d.Close())
	}
	d.elsewhere = &openPartitions{from: from, drive: o.Name, byKey: map[partitionKey]*list.Element{}, recent: list.New()}
	d.closers = append(d.closers, d.elsewhere.close)
	d.readActiveImage(ctx)
	return d, nil
}

// ReachesAny reports whether the drive makes splits of partitions that it does not hold.
func (d *Drive) ReachesAny() bool { return d.elsewhere != nil }

// SourceFailures returns how many reads from elsewhere have failed for good since the drive was opened, and the last
// error.
func (d *Drive) SourceFailures() (uint64, string) {
	if d.elsewhere == nil {
		return 0, ""
	}
	text, _ := d.elsewhere.lastFailure.Load().(string)
	return d.elsewhere.failures.Load(), text
}

// OwnFiles returns the places in a manifest of the partitions that the node's drives of reach any have in files of this
// machine, ascending.
func (m *Manager) OwnFiles(manifest *dataset.Manifest) (places []int) {
	for _, d := range m.Drives() {
		if d.elsewhere != nil {
			places = append(places, d.elsewhere.from.OwnFiles(manifest)...)
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// keptPartitions is how many partitions stay open that no split is open of: their footers are read once, and their
// resume points are kept.
const keptPartitions = 32

// partitionKey names a partition of a job.
type partitionKey struct {
	job  dataset.Digest
	name string
}

// openPartitions are the open partitions of a drive of reach any.
type openPartitions struct {
	from  Elsewhere
	drive string

	failures    atomic.Uint64
	lastFailure atomic.Value // string

	mu     sync.Mutex
	byKey  map[partitionKey]*list.Element
	recent *list.List // The elements are *openPartition, those used last at the front.
	closed bool
}

// openPartition is a partition that was opened, or is being opened. openPartitions.mu guards users.
type openPartition struct {
	key     partitionKey
	users   int
	dropped bool // not found any more: its last user closes it

	opening sync.Mutex // held while the footer is read
	remote  RemotePartition
	part    *partition.Partition // nil: not open yet
}

// acquire opens a partition, or finds it open. The caller calls release.
func (o *openPartitions) acquire(ctx context.Context, job dataset.Digest,
	want dataset.Partition) (*openPartition, error) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return nil, fmt.Errorf("drive %s: %w: it is closed", o.drive, api.ErrUnknownDrive)
	}
	key := partitionKey{job, want.Name}
	element := o.byKey[key]
	if element == nil {
		element = o.recent.PushFront(&openPartition{key: key})
		o.byKey[key] = element
	}
	o.recent.MoveToFront(element)
	p := element.Value.(*openPartition)
	p.users++
	o.mu.Unlock()
	if err := p.open(ctx, o.from, o.drive, want); err != nil {
		o.noteFailure(ctx, err)
		o.release(p)
		return nil, err
	}
	return p, nil
}

// release ends one use of a partition, and closes those used longest ago that are too many.
func (o *openPartitions) release(p *openPartition) {
	o.mu.Lock()
	p.users--
	var idle []*openPartition
	if p.dropped && p.users == 0 {
		idle = append(idle, p)
	}
	kept := 0
	for e := o.recent.Front(); e != nil; {
		next, q := e.Next(), e.Value.(*openPartition)
		if q.users == 0 {
			if kept++; kept > keptPartitions || o.closed || q.part == nil {
				o.recent.Remove(e)
				delete(o.byKey, q.key)
				idle = append(idle, q)
			}
		}
		e = next
	}
	o.mu.Unlock()
	for _, q := range idle {
		_ = q.close() // nothing was written
	}
}

// fail notes that a read of a partition failed for good. Later splits open the partition again, because its bytes may
// come from a place that has failed.
func (o *openPartitions) fail(ctx context.Context, p *openPartition, err error) {
	if ctx.Err() != nil || !errors.Is(err, ErrSource) && !errors.Is(err, ErrChanged) {
		return
	}
	o.noteFailure(ctx, err)
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.byKey[p.key]; e != nil && e.Value.(*openPartition) == p {
		o.recent.Remove(e)
		delete(o.byKey, p.key)
		p.dropped = true
	}
}

// noteFailure counts a read that failed for good.
func (o *openPartitions) noteFailure(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	o.failures.Add(1)
	const most = 1 << 10 // bytes of the text that is kept
	text := err.Error()
	o.lastFailure.Store(text[:min(len(text), most)])
}

// forget closes the partitions of a job. No split of the job is open.
func (o *openPartitions) forget(job dataset.Digest) {
	o.from.Forget(job)
	o.mu.Lock()
	var closing []*openPartition
	for key, e := range o.byKey {
		if p := e.Value.(*openPartition); key.job == job && p.users == 0 {
			o.recent.Remove(e)
			delete(o.byKey, key)
			closing = append(closing, p)
		}
	}
	o.mu.Unlock()
	for _, p := range closing {
		_ = p.close()
	}
}

// close closes every partition. No stream is open.
func (o *openPartitions) close() error {
	o.mu.Lock()
	o.closed = true
	var closing []*openPartition
	for _, e := range o.byKey {
		closing = append(closing, e.Value.(*openPartition))
	}
	clear(o.byKey)
	o.recent.Init()
	o.mu.Unlock()
	var errs []error
	for _, p := range closing {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}

// open reads the partition's footer, unless it was read before, and checks that the partition is that of the manifest.
func (p *openPartition) open(ctx context.Context, from Elsewhere, drive string, want dataset.Partition) error {
	p.opening.Lock()
	defer p.opening.Unlock()
	if p.part != nil {
		return nil
	}
	remote, err := from.Open(ctx, p.key.job, want)
	if err != nil {
		return fmt.Errorf("drive %s: partition %s: %w", drive, want.Name, err)
	}
	part, err := partition.Open(ctx, want.Name, remote, want.Bytes, program.Parquet, partition.Options{})
	if err != nil && ctx.Err() == nil && !endsAsParquet(ctx, remote, want.Bytes) {
		err = fmt.Errorf("%w, and %s is none: jobs over text are for drives and nodes that hold it: %w", ErrFormat,
			want.Name, err)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("drive %s: %w", drive, err), remote.Close())
	}
	if why := differs(part.Describe(), want); why != "" {
		return errors.Join(&ChangedError{Drive: drive, Partition: want.Name, Why: why}, remote.Close())
	}
	remote.Describe(part)
	p.part, p.remote = part, remote
	return nil
}

// endsAsParquet reports whether the last bytes of a partition are those of a Parquet file, or cannot be read.
func endsAsParquet(ctx context.Context, r RemotePartition, size int64) bool {
	const plain, encrypted = "PAR1", "PARE"
	end := make([]byte, min(size, int64(len(plain))))
	n, err := r.ReadAtContext(ctx, end, size-int64(len(end)))
	if n < len(end) && err != nil {
		return true
	}
	return string(end) == plain || string(end) == encrypted
}

// close closes the partition's reader, if it was opened.
func (p *openPartition) close() error {
	p.opening.Lock()
	defer p.opening.Unlock()
	if p.remote == nil {
		return nil
	}
	return p.remote.Close()
}
