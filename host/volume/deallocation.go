package volume

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// deallocator is a block device that takes room back: afterwards, blocks [lba, lba+n) hold nothing.
type deallocator interface {
	Deallocate(ctx context.Context, lba, n uint64) error
}

// giveBackTime bounds how long a failed Put takes to give its room back.
const giveBackTime = time.Minute

// giveBack deallocates the blocks that a Put wrote before it failed, if it failed before its commit. The archive ends
// before these blocks, so no member's bytes lie there. giveBack goes on when the Put was cancelled.
func (a *appender) giveBack() error {
	d, ok := a.dev.(deallocator)
	first := a.start/a.blockSize + 1 // the block with the archive's end is not written before the commit
	if !ok || a.committing || a.lba <= first {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), giveBackTime)
	defer cancel()
	if err := d.Deallocate(ctx, uint64(first), uint64(a.lba-first)); err != nil {
		return fmt.Errorf("what was written of it keeps its room (millrace drive trim): %w", err)
	}
	return nil
}

// ErrNoTrim says that the drive cannot deallocate blocks.
var ErrNoTrim = errors.New("drive takes no room back")

// Trim gives the room of everything behind the archive's end back to the drive: no member needs it, and a Put that was
// killed may have left something there. Trim returns how many bytes that are, whether or not they held anything. It
// touches no member.
func (v *Volume) Trim(ctx context.Context) (int64, error) {
	d, ok := v.device.(deallocator)
	if !ok {
		return 0, fmt.Errorf("volume: trim: %w", ErrNoTrim)
	}
	v.appending.Lock()
	defer v.appending.Unlock()
	if err := v.refresh(ctx); err != nil {
		return 0, fmt.Errorf("volume: trim: %w", err)
	}
	v.mu.Lock()
	end := v.end
	v.mu.Unlock()
	blockSize := int64(v.device.BlockSize())
	first, total := roundUp(end+2*sector, blockSize)/blockSize, v.device.Size()/blockSize
	if first >= total {
		return 0, nil
	}
	if err := d.Deallocate(ctx, uint64(first), uint64(total-first)); err != nil {
		return 0, fmt.Errorf("volume: trim: %w", err)
	}
	if err := v.device.Flush(ctx); err != nil {
		return 0, fmt.Errorf("volume: trim: %w", err)
	}
	return (total - first) * blockSize, nil
}
