package partitions

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/millrace/millrace/host"
)

// ErrRequest says that a request makes no sense.
var ErrRequest = errors.New("request")

// Options are the things that a Store needs of its node. All but StateDir are required.
type Options struct {
	Drive    func(name string) (*host.Drive, error) // returns an open drive
	Client   *http.Client                           // towards other nodes
	StateDir string                                 // where checksums are kept; empty: in memory only
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
}

// New makes a Store.
func New(o Options) *Store {
	return &Store{o: o, sums: openSums(o.StateDir, o.Log), verifying: make(chan struct{}, 1)}
}
