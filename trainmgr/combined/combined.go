// Package combined makes one storage of the trainer's own CPUs and of drives elsewhere.
//
// # Concurrency
//
// A [Storage] may be used from any goroutine.
//
// # Errors
//
// A [*MismatchError] says that the two sides have different files under one name.
package combined

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/offload"
)

// localPrefix begins the names of the trainer's own workers in errors and reports, so that no drive has the same name.
const localPrefix = "trainer/"

// Storage is the trainer's own CPUs and the drives elsewhere as one storage. The local part holds every
// partition and must always answer. A remote part may be unreachable: the partitions that it holds are then unknown.
// One of the remote parts is in use; the others make nothing.
type Storage struct {
	local  api.Storage
	logger *slog.Logger

	mu       sync.Mutex
	parts    []Part            // at least one
	used     int               // the part in use
	manifest *dataset.Manifest // manifest is that of the local part; it is nil before Dataset.
	job      *api.Job          // as it was prepared; nil before
}

// Part is a storage elsewhere, and the part of the pipeline that it runs.
type Part struct {
	Storage  api.Storage // nil: the job names none
	Cut      offload.Cut
	prepared bool // it has the job
}

// New makes a storage of a local part and at least one remote part, of which the first is in use.
func New(local api.Storage, parts []Part, logger *slog.Logger) *Storage {
	return &Storage{local: local, parts: parts, logger: logger}
}

// Parts returns how many remote parts there are.
func (c *Storage) Parts() int { return len(c.parts) }

// Use makes another remote part the one in use. No stream of the former part is open.
func (c *Storage) Use(part int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = part
}

// InUse returns the remote part in use.
func (c *Storage) InUse() Part {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.parts[c.used]
}

// Dataset implements api.Storage. It returns the drives of the local part; Join adds the drives elsewhere.
func (c *Storage) Dataset(ctx context.Context) (*api.Dataset, error) {
	held, err := c.local.Dataset(ctx)
	if err != nil {
		return nil, fmt.Errorf("the trainer's own CPUs: %w", err)
	}
	data := *held
	data.Drives = slices.Clone(held.Drives)
	for i := range data.Drives {
		data.Drives[i].Name = localPrefix + data.Drives[i].Name
		data.Drives[i].Local = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.manifest = data.Manifest
	return &data, nil
}

// errNoRemote says that there is no storage beside the trainer's own CPUs.
var errNoRemote = errors.New("the job names no drive and no worker")

// MismatchError says that a partition is one file on the trainer's machine and another one elsewhere.
type MismatchError struct{ Own, Elsewhere dataset.Partition }

// Error implements error.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("partition %s is one file on the trainer's machine (%s, %s) and another one elsewhere (%s, %s): "+
		"give both sides the same files", e.Own.Name, quantity.Of(e.Own.Rows, "row"), quantity.Of(e.Own.Bytes, "byte"),
		quantity.Of(e.Elsewhere.Rows, "row"), quantity.Of(e.Elsewhere.Bytes, "byte"))
}

// remoteDrives asks the remote part in use which drives it has, with the partitions in the numbers of the job's
// manifest. remoteDrives returns a MismatchError if a partition of the job is another file there. It leaves out
// partitions that the job does not have, and drives that hold no partition of the job.
func (c *Storage) remoteDrives(ctx context.Context) ([]api.Drive, error) {
	remote := c.InUse().Storage
	if remote == nil {
		return nil, errNoRemote
	}
	there, err := remote.Dataset(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	manifest := c.manifest
	c.mu.Unlock()
	numbers := make([]int, len(there.Manifest.Partitions))
	for i, p := range there.Manifest.Partitions {
		numbers[i] = slices.IndexFunc(manifest.Partitions, func(own dataset.Partition) bool { return own.Name == p.Name })
		if n := numbers[i]; n >= 0 {
			if own := manifest.Partitions[n]; own.Content != p.Content || own.Rows != p.Rows || own.Bytes != p.Bytes {
				return nil, &MismatchError{Own: own, Elsewhere: p}
			}
		}
	}
	var drives []api.Drive
	for _, d := range there.Drives {
		held := []int{}
		for _, p := range d.Partitions {
			if numbers[p] >= 0 {
				held = append(held, numbers[p])
			}
		}
		d.Partitions = held
		if len(held) > 0 {
			drives = append(drives, d)
		}
	}
	return drives, nil
}

// Prepare implements api.Storage. Join hands the job to a remote part.
func (c *Storage) Prepare(ctx context.Context, job *api.Job) error {
	if err := c.local.Prepare(ctx, job); err != nil {
		return fmt.Errorf("the trainer's own CPUs: %w", err)
	}
	c.mu.Lock()
	c.job = job
	c.mu.Unlock()
	return nil
}

// Join asks the remote part in use for its drives, gives it the job and returns the drives.
func (c *Storage) Join(ctx context.Context) ([]api.Drive, error) {
	drives, err := c.remoteDrives(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	job := *c.job
	job.Manifest = c.manifest
	part := &c.parts[c.used]
	c.mu.Unlock()
	if err := part.Storage.Prepare(ctx, &job); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	part.prepared = true
	return drives, nil
}

// part returns the part that a drive belongs to, and the drive's name in that part.
func (c *Storage) part(drive string) (api.Storage, string, error) {
	if name, ok := strings.CutPrefix(drive, localPrefix); ok {
		return c.local, name, nil
	}
	remote := c.InUse().Storage
	if remote == nil {
		return nil, "", fmt.Errorf("drive %s: %w", drive, api.ErrUnknownDrive)
	}
	return remote, drive, nil
}

// Measure implements api.Storage.
func (c *Storage) Measure(ctx context.Context, job dataset.Digest, drive string) (api.Measurement, error) {
	part, name, err := c.part(drive)
	if err != nil {
		return api.Measurement{}, err
	}
	return part.Measure(ctx, job, name)
}

// Open implements api.Storage.
func (c *Storage) Open(ctx context.Context, request api.SplitRequest) (api.Stream, error) {
	part, name, err := c.part(request.Drive)
	if err != nil {
		return nil, err
	}
	request.Drive = name
	return part.Open(ctx, request)
}

// Report implements api.Storage. A remote part that is away reports nothing.
func (c *Storage) Report(ctx context.Context, job dataset.Digest) ([]api.DriveReport, error) {
	reports, err := c.local.Report(ctx, job)
	if err != nil {
		return nil, err
	}
	reports = slices.Clone(reports)
	for i := range reports {
		reports[i].Name = localPrefix + reports[i].Name
	}
	remote := c.InUse()
	if !remote.prepared {
		return reports, nil
	}
	there, err := remote.Storage.Report(ctx, job)
	if err != nil {
		c.logger.Warn("the drives elsewhere do not report", "error", err)
	}
	return slices.Concat(there, reports), nil
}

// Finish implements api.Storage. A remote part that is away forgets the job by itself.
func (c *Storage) Finish(ctx context.Context, job dataset.Digest) error {
	c.mu.Lock()
	parts := slices.Clone(c.parts)
	c.mu.Unlock()
	for _, part := range parts {
		if !part.prepared {
			continue
		}
		if err := part.Storage.Finish(ctx, job); err != nil {
			c.logger.Warn("the drives elsewhere did not forget the job", "error", err)
		}
	}
	return c.local.Finish(ctx, job)
}
