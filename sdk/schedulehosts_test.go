package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// scheduledJob is the work of a host, and its right answer.
type scheduledJob struct {
	program *program.Program
	schema  *tensor.Schema
	data    []byte        // the partition, which lies at the beginning of the flash
	run     processor.Run // without its partition
	want    []*tensor.MiniBatch
}

// scheduledHost is a host that runs its job again and again, in a region of the drive. Its association is made again
// when it is lost.
type scheduledHost struct {
	t      *testing.T
	name   string
	set    sdk.Commands
	id     uuid.UUID
	job    *scheduledJob
	drive  *driveProcess
	ruler  *ruler
	made   *atomic.Uint64 // mini-batches of all hosts
	missed sync.Once      // one wrong mini-batch is reported, and not all that follow

	runs, errs atomic.Uint64 // whole runs, and runs that ended with an error

	mu     sync.Mutex
	region int // in which the next run is to be
	dev    *sdk.Device
	conn   *tcp.Host
	cord   *cord
	faults int    // under way that may end a run of this host's
	begun  int    // faults so far
	broken bool   // a fault has begun, and no whole run since its end
	last   uint64 // tick of the last mini-batch, if timed
	timed  bool
	late   []uint64 // ticks between two mini-batches in a row that no fault of this host's and no error lies between
}

// fault runs something that may end runs of the host with an error. Errors are excused from its beginning to the end of
// the first whole run that has begun after it.
func (h *scheduledHost) fault(do func()) {
	h.begin()
	defer h.end()
	do()
}

func (h *scheduledHost) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults++
	h.begun++
	h.broken, h.timed = true, false
}

func (h *scheduledHost) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults--
}

// move sends the host's next run into another region.
func (h *scheduledHost) move(region int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.region = region
}

// uses reports whether the host's job runs in a region, or is to run there.
func (h *scheduledHost) uses(region int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.region == region || h.dev != nil && h.dev.Region() == region
}

// cut cuts the host's connections.
func (h *scheduledHost) cut() {
	h.mu.Lock()
	c := h.cord
	h.mu.Unlock()
	if c != nil {
		c.cut()
	}
}

// association returns the host's association for commands beside its job, nil if there is none.
func (h *scheduledHost) association() (*sdk.Device, *tcp.Host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dev, h.conn
}

// device returns the host's device in the region that it is to run in.
func (h *scheduledHost) device(ctx context.Context) (*sdk.Device, error) {
	h.mu.Lock()
	region, dev := h.region, h.dev
	h.mu.Unlock()
	if dev != nil && dev.Region() == region {
		return dev, nil
	}
	if dev != nil {
		h.close()
	}
	dev, conn, c, err := openScheduled(ctx, h.drive, h.id, h.set, region)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dev, h.conn, h.cord, h.timed = dev, conn, c, false
	return dev, nil
}

// openScheduled makes an association of a host with the drive.
func openScheduled(ctx context.Context, drive *driveProcess, id uuid.UUID, set sdk.Commands,
	region int) (*sdk.Device, *tcp.Host, *cord, error) {
	c := &cord{}
	conn, err := tcp.Dial(ctx, tcp.DialOptions{Address: nobodysAddress, Subsystem: scheduleNQN, HostID: id,
		DialContext: drive.dial(c), FirstDelay: 5 * time.Millisecond, LongestDelay: 50 * time.Millisecond})
	if err != nil {
		return nil, nil, nil, err
	}
	dev, err := sdk.NewDevice(ctx, "drive", conn, set, sdk.DeviceOptions{Region: region})
	if err != nil {
		return nil, nil, nil, errors.Join(err, conn.Close())
	}
	return dev, conn, c, nil
}

func (h *scheduledHost) close() {
	h.mu.Lock()
	dev := h.dev
	h.dev, h.conn, h.cord = nil, nil, nil
	h.mu.Unlock()
	if dev != nil {
		_ = dev.Close() // its association may be lost
	}
}

// work runs the job until ctx ends. Each run is right to the byte, or ends with an error of a known type that a fault
// excuses.
func (h *scheduledHost) work(ctx context.Context) {
	defer h.close()
	for ctx.Err() == nil {
		h.mu.Lock()
		excused, calm, begun := h.broken, h.faults == 0, h.begun
		h.mu.Unlock()
		err := h.runOnce(ctx)
		h.mu.Lock()
		excused = excused || h.broken
		if err == nil && calm && h.begun == begun {
			h.broken = false
		}
		if err != nil {
			h.timed = false
		}
		h.mu.Unlock()
		switch {
		case err == nil:
			h.runs.Add(1)
		case ctx.Err() != nil:
		case !typedDriveError(err):
			assert.NoError(h.t, err, "%s: an error of no type", h.name)
			return
		case !excused && !errors.Is(err, sdk.ErrRegionOwned):
			assert.NoError(h.t, err, "%s: nothing has happened to this host or its region", h.name)
			return
		default:
			h.errs.Add(1)
			h.repair(ctx)
		}
	}
}

// repair activates the stock image if the host's region has no image: with the standard command set an activation has
// two steps, and the host that began it may be lost between them.
func (h *scheduledHost) repair(ctx context.Context) {
	time.Sleep(time.Millisecond)
	dev, _ := h.association()
	if dev == nil {
		return
	}
	r, err := dev.ImageLog(ctx)
	if err != nil {
		return // the association is lost
	}
	if _, ok := r.In(dev.Region()).Active(); !ok {
		if err := dev.ActivateImage(ctx, 0); err != nil {
			assert.True(h.t, typedDriveError(err) || ctx.Err() != nil, "%s: %v", h.name, err)
		}
	}
}

// typedDriveError reports whether an error has a type by which a program can tell what happened: the connection was
// lost, the drive refused with a status, the region is another host's, or an image was refused. A command that got no
// answer in time is none.
func typedDriveError(err error) bool {
	var status nvme.Status
	var load *image.LoadError
	var network *net.OpError
	for _, known := range []error{tcp.ErrLost, nvme.ErrClosed, sdk.ErrClosed, sdk.ErrRegionOwned, sdk.ErrSLMFull} {
		if errors.Is(err, known) {
			return true
		}
	}
	return errors.As(err, &status) || errors.As(err, &load) || errors.As(err, &network)
}

// runOnce runs the job once.
func (h *scheduledHost) runOnce(ctx context.Context) error {
	dev, err := h.device(ctx)
	if err != nil {
		return err
	}
	return h.job.runOn(ctx, dev, h.took, h.differs)
}

// runOn runs the job on a device. It calls took after each mini-batch, and differs with what is wrong about one.
func (j *scheduledJob) runOn(ctx context.Context, dev *sdk.Device, took func(), differs func(string)) (err error) {
	extent := partition.Extent{Len: (int64(len(j.data)) + 511) &^ 511}
	run := j.run
	run.Partition, err = partition.Open(ctx, "part-0.parquet", io.NewSectionReader(dev, 0, extent.Len),
		int64(len(j.data)), program.Parquet, partition.Options{Extents: []partition.Extent{extent}})
	if err != nil {
		return err
	}
	p, err := sdk.NewProcessor(ctx, dev, j.program, j.schema, processor.Options{SLM: scheduleSLM})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	s, err := p.Open(ctx, run)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for i := 0; ; i++ {
		mb, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			if i != len(j.want) {
				differs(fmt.Sprintf("%d mini-batches of %d", i, len(j.want)))
			}
			return nil
		}
		if err != nil {
			return err
		}
		if i >= len(j.want) {
			differs(fmt.Sprintf("more than %d mini-batches", len(j.want)))
		} else if diff := tensor.Diff(j.want[i], mb); diff != "" {
			differs(fmt.Sprintf("mini-batch %d: %s", i, diff))
		}
		mb.Release()
		took()
	}
}

func (h *scheduledHost) differs(how string) {
	h.missed.Do(func() { assert.Fail(h.t, "wrong bytes", "%s: %s", h.name, how) })
}

// took counts a mini-batch, and how late it is.
func (h *scheduledHost) took() {
	h.made.Add(1)
	now := h.ruler.ticks.Load()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timed && !h.broken {
		h.late = append(h.late, now-h.last)
	}
	h.last, h.timed = now, !h.broken
}
