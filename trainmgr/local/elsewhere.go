package local

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
)

// ErrNotThere says that drives could not be opened yet.
var ErrNotThere = errors.New("the drives are not there")

// Elsewhere is drives that need not be there when a job begins: trainmgr.Submit takes them beside
// trainmgr.Offload.Local, which stands in. The drives are opened when Dataset is called, and again by each call of
// Dataset until that succeeds.
type Elsewhere struct {
	config Config

	mu      sync.Mutex // held while the drives are opened
	manager *host.Manager
	closed  bool
}

var _ api.Storage = (*Elsewhere)(nil)

// NewElsewhere returns the drives of a configuration, none of which is opened yet. Close closes those that are opened.
func NewElsewhere(c Config) *Elsewhere { return &Elsewhere{config: c} }

// Dataset implements api.Storage. It opens the drives if they are not open.
func (e *Elsewhere) Dataset(ctx context.Context) (*api.Dataset, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return nil, fmt.Errorf("%w: they were closed", ErrNotThere)
	case e.manager == nil:
		manager, err := Open(ctx, e.config)
		if err != nil {
			return nil, err
		}
		e.manager = manager
	}
	return e.manager.Dataset(ctx)
}

// opened returns the manager over the drives.
func (e *Elsewhere) opened() (*host.Manager, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.manager == nil {
		return nil, ErrNotThere
	}
	return e.manager, nil
}

// Prepare implements api.Storage.
func (e *Elsewhere) Prepare(ctx context.Context, job *api.Job) error {
	m, err := e.opened()
	if err != nil {
		return err
	}
	return m.Prepare(ctx, job)
}

// Measure implements api.Storage.
func (e *Elsewhere) Measure(ctx context.Context, job dataset.Digest, drive string) (api.Measurement, error) {
	m, err := e.opened()
	if err != nil {
		return api.Measurement{}, err
	}
	return m.Measure(ctx, job, drive)
}

// Open implements api.Storage.
func (e *Elsewhere) Open(ctx context.Context, request api.SplitRequest) (api.Stream, error) {
	m, err := e.opened()
	if err != nil {
		return nil, err
	}
	return m.Open(ctx, request)
}

// Report implements api.Storage.
func (e *Elsewhere) Report(ctx context.Context, job dataset.Digest) ([]api.DriveReport, error) {
	m, err := e.opened()
	if err != nil {
		return nil, err
	}
	return m.Report(ctx, job)
}

// Finish implements api.Storage.
func (e *Elsewhere) Finish(ctx context.Context, job dataset.Digest) error {
	m, err := e.opened()
	if err != nil {
		return err
	}
	return m.Finish(ctx, job)
}

// Close closes the drives that are open.
func (e *Elsewhere) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.manager == nil {
		return nil
	}
	manager := e.manager
	e.manager = nil
	return manager.Close()
}
