package regions

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/sdk"
)

// spareBytes is the room behind the partitions, in which ordinary writes go.
const spareBytes = 16 << 20

// imageSlot is the slot of the image that a region is switched to and from; the other is the stock image.
const imageSlot = 1

// stage is a drive that holds the partitions, and hosts of it.
type stage struct {
	o        *Options
	works    []*work
	drive    *csd.Drive
	recorder *recorder // of the last region
	share    int       // of ordinary commands, in percent
	spare    int64     // the first byte behind the partitions
}

func newStage(ctx context.Context, o *Options, works []*work, share int) (s *stage, err error) {
	last := works[len(works)-1]
	s = &stage{o: o, works: works, share: share, recorder: newRecorder(o.Regions - 1),
		spare: wholeUnits(last.at + int64(len(last.data)))}
	opt := csd.Options{
		Size: s.spare + spareBytes, LBA: o.uri.LBA, SLMBytes: o.uri.SLM, Threads: o.uri.Threads, Regions: o.Regions,
		HostIOShare: share, WrapCompute: s.recorder.wrap,
	}
	if o.uri.Scheme == "file" {
		opt.Path, opt.Create = o.uri.Name, true
	}
	if s.drive, err = csd.Open(opt); err != nil {
		return nil, err
	}
	if err := s.fill(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// close closes the drive, and removes it if it lies in a file.
func (s *stage) close() error {
	if s.drive.Created() {
		return s.drive.Remove()
	}
	return s.drive.Close()
}

// fill writes the partitions, loads the image of the first workload and has it tested.
func (s *stage) fill(ctx context.Context) (err error) {
	dev, err := s.device(ctx, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	for _, w := range s.works {
		if _, err := dev.WriteAt(w.data, w.at); err != nil {
			return err
		}
	}
	b, err := image.StockNamed(s.works[0].image)
	if err != nil {
		return err
	}
	if err := dev.LoadImage(ctx, imageSlot, b); err != nil {
		return err
	}
	return dev.TestImage(ctx, imageSlot)
}

// connect begins an association of a host in this process.
func (s *stage) connect() (nvme.Conn, error) {
	id := uuid.New()
	return controller.Local(s.drive.Subsystem(), controller.HostID{
		NQN: "nqn.2014-08.org.nvmexpress:uuid:" + id.String(), ID: id,
	})
}

// device opens the drive at a region.
func (s *stage) device(ctx context.Context, region int) (*sdk.Device, error) {
	conn, err := s.connect()
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
