package sdk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// ErrNoCompute says that a plain drive was asked to compute.
var ErrNoCompute = errors.New("drive does not compute")

// ErrNoFlash says that a drive without flash was asked to read, write or hold something.
var ErrNoFlash = errors.New("drive has no flash: it computes on what hosts store in its memory, and holds no files")

// Device is an open drive: one association with its controller. It is safe for concurrent use. Close it.
type Device struct {
	name   string // how it was opened, for errors
	conn   nvme.Conn
	queue  *Queue
	trace  *Trace
	mdts   int      // most bytes of one command's data
	region int      // in which the device computes
	window cs.Range // The region's part of local memory.
	info   Info

	compute *Compute
	rmw     sync.Mutex // makes WriteAt's read-modify-write of partial blocks whole against other WriteAt calls
	closers []func() error

	closing sync.Once
	closed  error // Close's result, after closing
}

// Info returns the drive's description of itself from the time of Open.
func (d *Device) Info() Info { return d.info }

// Diskless reports whether the drive has no flash.
func (d *Device) Diskless() bool { return d.info.Diskless }

// BlockSize returns the size of a logical block in bytes, 0 for a drive without flash.
func (d *Device) BlockSize() int { return d.info.BlockSize }

// Size returns the capacity of namespace 1 in bytes.
func (d *Device) Size() int64 { return d.info.Size }

// MaxTransfer returns the most bytes that one command moves.
func (d *Device) MaxTransfer() int { return d.mdts }

// Region returns the region of the drive in which the device computes.
func (d *Device) Region() int { return d.region }

// String names the drive as it was opened.
func (d *Device) String() string { return d.name }

// Queue returns the device's I/O queue, for commands that the caller makes. The device's own commands use it too.
func (d *Device) Queue() *Queue { return d.queue }

// giveBackTime bounds the time in which Close frees memory that an association which outlives the device would go on
// holding.
const giveBackTime = 10 * time.Second

// Close waits for the commands outstanding and ends the association: memory that it held is free again, views of it
// are invalid. Further calls return the same.
func (d *Device) Close() error {
	d.closing.Do(func() {
		errs := []error{d.queue.Close()}
		if l, ok := d.conn.(nvme.Lasting); ok && l.Lasts() && d.compute != nil {
			ctx, cancel := context.WithTimeout(context.Background(), giveBackTime)
			errs = append(errs, d.compute.set.giveBack(ctx))
			cancel()
		}
		errs = append(errs, d.conn.Close())
		for _, c := range d.closers {
			errs = append(errs, c())
		}
		if err := errors.Join(errs...); err != nil {
			d.closed = fmt.Errorf("%s: close: %w", d.name, err)
		}
	})
	return d.closed
}

// admin runs an admin command.
func (d *Device) admin(ctx context.Context, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	return d.trace.admin(ctx, d.conn, cmd, data)
}

// association is the association that commands go to.
type association struct {
	conn   nvme.Conn
	number uint64 // 0: the connection has only one, or the commands may go to any
}

// anyAssociation returns where commands go that use no memory of one association.
func (d *Device) anyAssociation() association { return association{conn: d.conn} }

// submit sends an I/O command in an association through the device's queue.
func (d *Device) submit(ctx context.Context, a association, cmd *nvme.Command, data []byte) *Future {
	return d.queue.submit(ctx, a.conn, cmd, data)
}

// wrap names drive and operation in an error; nil stays nil.
func (d *Device) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", d.name, op, err)
}
