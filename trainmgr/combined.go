package trainmgr

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

// combinedStorage is the trainer's own CPUs and the drives elsewhere as one storage. The local part holds every
// partition and must always answer. A remote part may be unreachable: the partitions that it holds are then unknown.
// One of the remote parts is in use; the others make nothing.
type combinedStorage struct {
	local  api.Storage
	logger *slog.Logger

	mu       sync.Mutex
	parts    []remotePart      // at least one
	used     int               // the part in use
	manifest *dataset.Manifest // manifest is that of the local part; it is nil before Dataset.
	job      *api.Job          // as it was prepared; nil before
}

// remotePart is a storage elsewhere, and the part of the pipeline that it runs.
type remotePart struct {
	storage  api.Storage // nil: the job names none
	cut      offload.Cut
	prepared bool // it has the job
}

// use makes another remote part the one in use. No stream of the former part is open.
func (c *combinedStorage) use(part int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = part
}

// inUse returns the remote part in use.
func (c *combinedStorage) inUse() remotePart {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.parts[c.used]
}

// Dataset implements api.Storage. It returns the drives of the local part; join adds the drives elsewhere.
func (c *combinedStorage) Dataset(ctx context.Context) (*api.Dataset, error) {
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

// remoteDrives asks the remote part in use which drives it has, with the partitions in the numbers of the job's
// manifest. remoteDrives returns ErrOptions if a partition of the job is another file there. It leaves out partitions
// that the job does not have, and drives that hold no partition of the job.
func (c *combinedStorage) remoteDrives(ctx context.Context) ([]api.Drive, error) {
	remote := c.inUse().storage
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
				return nil, fmt.Errorf("%w: partition %s is one file on the trainer's machine (%s, %s) and another "+
					"one elsewhere (%s, %s): give both sides the same files", ErrOptions, p.Name,
					quantity.Of(own.Rows, "row"), quantity.Of(own.Bytes, "byte"), quantity.Of(p.Rows, "row"),
					quantity.Of(p.Bytes, "byte"))
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

// Prepare implements api.Storage. join hands the job to a remote part.
func (c *combinedStorage) Prepare(ctx context.Context, job *api.Job) error {
	if err := c.local.Prepare(ctx, job); err != nil {
		return fmt.Errorf("the trainer's own CPUs: %w", err)
	}
	c.mu.Lock()
	c.job = job
	c.mu.Unlock()
	return nil
}

// join asks the remote part in use for its drives, gives it the job and returns the drives.
func (c *combinedStorage) join(ctx context.Context) ([]api.Drive, error) {
	drives, err := c.remoteDrives(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	job := *c.job
	job.Manifest = c.manifest
	part := &c.parts[c.used]
	c.mu.Unlock()
	if err := part.storage.Prepare(ctx, &job); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	part.prepared = true
	return drives, nil
}

// part returns the part that a drive belongs to, and the drive's name in that part.
func (c *combinedStorage) part(drive string) (api.Storage, string, error) {
	if name, ok := strings.CutPrefix(drive, localPrefix); ok {
		return c.local, name, nil
	}
	remote := c.inUse().storage
	if remote == nil {
		return nil, "", fmt.Errorf("drive %s: %w", drive, api.ErrUnknownDrive)
	}
	return remote, drive, nil
}

// Measure implements api.Storage.
func (c *combinedStorage) Measure(ctx context.Context, job dataset.Digest, drive string) (api.Measurement, error) {
	part, name, err := c.part(drive)
	if err != nil {
		return api.Measurement{}, err
	}
	return part.Measure(ctx, job, name)
}

// Open implements api.Storage.
func (c *combinedStorage) Open(ctx context.Context, request api.SplitRequest) (api.Stream, error) {
	part, name, err := c.part(request.Drive)
	if err != nil {
		return nil, err
	}
	request.Drive = name
	return part.Open(ctx, request)
}

// Report implements api.Storage. A remote part that is away reports nothing.
func (c *combinedStorage) Report(ctx context.Context, job dataset.Digest) ([]api.DriveReport, error) {
	reports, err := c.local.Report(ctx, job)
	if err != nil {
		return nil, err
	}
	reports = slices.Clone(reports)
	for i := range reports {
		reports[i].Name = localPrefix + reports[i].Name
	}
	remote := c.inUse()
	if !remote.prepared {
		return reports, nil
	}
	there, err := remote.storage.Report(ctx, job)
	if err != nil {
		c.logger.Warn("the drives elsewhere do not report", "error", err)
	}
	return slices.Concat(there, reports), nil
}

// Finish implements api.Storage. A remote part that is away forgets the job by itself.
func (c *combinedStorage) Finish(ctx context.Context, job dataset.Digest) error {
	c.mu.Lock()
	parts := slices.Clone(c.parts)
	c.mu.Unlock()
	for _, part := range parts {
		if !part.prepared {
			continue
		}
		if err := part.storage.Finish(ctx, job); err != nil {
			c.logger.Warn("the drives elsewhere did not forget the job", "error", err)
		}
	}
	return c.local.Finish(ctx, job)
}
