package regions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/sdk"
)

// spareBytes is the room behind the partitions, in which ordinary writes go.
const spareBytes = 16 << 20

// imageSlot is the slot of the image that a region is switched to and from, which is that of the first workload; the
// other is the stock image. Images of further workloads lie in the slots behind it.
const imageSlot = 1

// stage is a drive that holds the partitions, and hosts of it.
type stage struct {
	o        *Options
	works    []*work
	drive    *csd.Drive
	recorder *recorder // It records the last region.
	slots    []string  // images by name, from imageSlot on
	share    int       // share is that of ordinary commands, in percent.
	spare    int64     // the first byte behind the partitions
}

func newStage(ctx context.Context, o *Options, works []*work, share int) (s *stage, err error) {
	s = &stage{o: o, works: works, share: share, recorder: newRecorder(o.Regions - 1)}
	for _, w := range works {
		s.spare = max(s.spare, wholeUnits(w.at+int64(len(w.data))))
	}
	opt := csd.Options{
		Size: s.spare + spareBytes, LBA: o.uri.LBA, SLMBytes: o.uri.SLM, Threads: o.uri.Threads, Regions: o.Regions,
		HostIOShare: share, WrapCompute: s.recorder.wrapCompute, Timing: o.Timing,
	}
	if o.uri.Scheme == "file" {
		opt.Path, opt.Create = o.uri.Name, true
	}
	if s.drive, err = csd.Open(opt); err != nil {
		return nil, err
	}
	if err := s.preparePartitions(ctx); err != nil {
		return nil, errors.Join(err, s.closeDrive())
	}
	return s, nil
}

// closeDrive closes the drive, and removes it if it lies in a file.
func (s *stage) closeDrive() error {
	if s.drive.Created() {
		return s.drive.Remove()
	}
	return s.drive.Close()
}

// preparePartitions writes the partitions, loads the images of the workloads and has them tested.
func (s *stage) preparePartitions(ctx context.Context) (err error) {
	dev, err := s.openRegion(ctx, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	for i, w := range s.works {
		if slices.ContainsFunc(s.works[:i], func(e *work) bool { return e.set == w.set }) {
			continue // they share the partition
		}
		if _, err := dev.WriteAt(w.data, w.at); err != nil {
			return err
		}
	}
	for _, w := range s.works {
		if slices.Contains(s.slots, w.image) {
			continue
		}
		b, err := stock.Named(w.image)
		if err != nil {
			return err
		}
		slot := imageSlot + len(s.slots)
		if err := errors.Join(dev.LoadImage(ctx, slot, b), dev.TestImage(ctx, slot)); err != nil {
			return err
		}
		s.slots = append(s.slots, w.image)
	}
	return nil
}

// pacedTime is the time on the clock by which the drive's rates count.
func (s *stage) pacedTime() time.Time {
	if s.o.Timing == nil {
		return time.Now()
	}
	return s.o.Timing.Clock().Now()
}

// connectHost begins an association of a host in this process.
func (s *stage) connectHost() (nvme.Conn, error) {
	id := uuid.New()
	return controller.Local(s.drive.Subsystem(), controller.HostID{
		NQN: "nqn.2014-08.org.nvmexpress:uuid:" + id.String(), ID: id,
	})
}

// openRegion opens the drive at a region.
func (s *stage) openRegion(ctx context.Context, region int) (*sdk.Device, error) {
	conn, err := s.connectHost()
	if err != nil {
		return nil, err
	}
	dev, err := sdk.NewDevice(ctx, fmt.Sprintf("region %d", region), conn, s.o.uri.Commands,
		sdk.DeviceOptions{Region: region})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return dev, nil
}
