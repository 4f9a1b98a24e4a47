package host

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/partition"
)

// Sources say how partitions that are named by a URI are opened and read. The zero value reads http: and https:, with
// the certificates that the system trusts and a cache of the drive's own. S3 needs an opener that has a client for it,
// as source.Stores with one of package host/source/s3.
type Sources struct {
	Opener source.Opener
	Cache  *source.Cache
}

// withDefaults fills in missing values.
func (s Sources) withDefaults() (Sources, error) {
	if s.Opener == nil {
		s.Opener = &source.Stores{Web: source.NewWeb(source.NewTransport(nil))}
	}
	var err error
	if s.Cache == nil {
		s.Cache, err = source.NewCache(source.Options{})
	}
	return s, err
}

// FarFileError says that a drive cannot preprocess a file that does not lie on it.
type FarFileError struct{ URI string }

func (e *FarFileError) Error() string {
	return fmt.Sprintf("%s: a drive preprocesses what lies on its own flash: use --engine cpu, or put the file on a "+
		"drive first (millrace dataset place, millrace drive put)", e.URI)
}

// chooseFarEngine has the node's CPU preprocess where a file lies elsewhere, unless the caller wants the drive.
func (d *Drive) chooseFarEngine(locations []source.Location) error {
	for _, at := range locations {
		switch {
		case !at.InStore():
		case d.o.Engine == EngineDrive:
			return &FarFileError{URI: at.String()}
		case d.o.Engine == EngineAuto:
			d.o.Engine = EngineCPU
		}
	}
	return nil
}

// farOpens is how many far partitions are opened at once: each waits for a few answers.
const farOpens = 16

// openFarFiles opens those of the files that lie elsewhere as partitions, by their location.
func (d *Drive) openFarFiles(ctx context.Context, locations []source.Location, names []string,
) (map[source.Location]*partition.Partition, error) {
	var far []source.Location
	given := map[source.Location]string{} // names by location
	for i, at := range locations {
		if at.InStore() {
			far = append(far, at)
			given[at] = names[i]
		}
	}
	if len(far) == 0 {
		return nil, nil
	}
	var err error
	if d.o.Sources, err = d.o.Sources.withDefaults(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		opens  sync.WaitGroup
		places = make(chan struct{}, farOpens)
		mu     sync.Mutex // guards what follows, and the drive's closers and readers
		opened = make(map[source.Location]*partition.Partition, len(far))
		failed error
	)
	d.far = map[*partition.Partition]*source.Reader{}
	for _, at := range far {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		opens.Go(func() {
			defer func() { <-places }()
			p, r, err := d.openFarFile(ctx, at, given[at], &mu)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				if failed == nil {
					failed = err
				}
				cancel(err)
				return
			}
			opened[at], d.far[p] = p, r
		})
	}
	opens.Wait()
	if failed == nil && ctx.Err() != nil {
		failed = context.Cause(ctx)
	}
	return opened, failed
}

// openFarFile opens one file that lies elsewhere. mu guards the drive's closers.
func (d *Drive) openFarFile(
	ctx context.Context, at source.Location, name string, mu *sync.Mutex,
) (*partition.Partition, *source.Reader, error) {
	src, err := d.o.Sources.Opener.Open(ctx, at, source.Identity{})
	if err != nil {
		return nil, nil, err
	}
	r := d.o.Sources.Cache.NewReader(src)
	mu.Lock()
	d.closers = append(d.closers, func() error { return errors.Join(r.Close(), src.Close()) })
	mu.Unlock()
	if d.source() != program.Parquet {
		r.ExpectAll()
	}
	stop := context.AfterFunc(ctx, func() { r.End(context.Cause(ctx)) })
	p, err := partition.Open(ctx, name, r, src.Size(), d.source(), partition.Options{Text: d.o.Text})
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	r.Describe(p)
	return p, r, nil
}

// farCounters returns the counters of reads from elsewhere since the drive was opened, or nil where nothing lies
// elsewhere.
func (d *Drive) farCounters() *api.SourceCounters {
	if len(d.far) == 0 {
		return nil
	}
	var c api.SourceCounters
	for _, r := range d.far {
		s := r.Statistics()
		c.Requests += s.Requests
		c.Bytes += s.Bytes
		c.BytesUnneeded += s.Unneeded
		c.Retries += s.Retries
		c.Waited += s.Waited
		c.Stalled += s.Stalled
	}
	return &c
}
