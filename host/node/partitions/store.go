package partitions

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace/host"
)

// ErrRequest says that a request makes no sense.
var ErrRequest = errors.New("request")

// Options are the things that a Store needs of its node. All but StateDir are required.
type Options struct {
	Drive func(name string) (*host.Drive, error) // returns an open drive
	// Siblings returns the other open regions of a drive, which hold what the drive holds.
	Siblings func(*host.Drive) []*host.Drive
	Client   *http.Client // towards other nodes
	StateDir string       // where checksums are kept; empty: in memory only
	// WriteTime is how long a client may take to read or send a partition, beside time that grows with its size.
	WriteTime time.Duration
	Changed   func() // called when a drive has one more partition
	Log       *slog.Logger
}

// Store is the partitions on a node's drives.
type Store struct {
	o         Options
	sums      *sums
	verifying chan struct{} // holds one while a partition is verified

	mu        sync.Mutex             // guards appending
	appending map[string]*sync.Mutex // by a drive's identity: held while a partition is appended to its flash
}

// New makes a Store.
func New(o Options) *Store {
	return &Store{o: o, sums: openSums(o.StateDir, o.Log), verifying: make(chan struct{}, 1),
		appending: map[string]*sync.Mutex{}}
}

// appender returns the lock of the only appender of a drive's flash. Each region of the drive has a Volume of its own
// there.
func (s *Store) appender(d *host.Drive) *sync.Mutex {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := d.Identity()
	if s.appending[id] == nil {
		s.appending[id] = new(sync.Mutex)
	}
	return s.appending[id]
}

// rescan finds a partition that was appended to a drive, in all regions of the drive. A region that fails to read the
// volume is without the partition until it is opened again.
func (s *Store) rescan(ctx context.Context, d *host.Drive) error {
	if err := d.Rescan(ctx); err != nil {
		return err
	}
	for _, other := range s.o.Siblings(d) {
		if err := other.Rescan(ctx); err != nil {
			s.o.Log.Warn("a region does not list a partition that was put to another region of its drive", "drive",
				other.Name(), "error", err)
		}
	}
	return nil
}
