package volume

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// deallocator is a block device that takes room back: blocks [lba, lba+n) hold nothing afterwards.
type deallocator interface {
	Deallocate(ctx context.Context, lba, n uint64) error
}

// giveBackTime bounds what a Put that failed spends on giving room back.
const giveBackTime = time.Minute

// giveBack deallocates what a Put that failed before its commit has written. The archive ends before it, so nobody's
// bytes lie there. It goes on when the Put was called off.
func (a *appender) giveBack() error {
	d, ok := a.dev.(deallocator)
	first := a.at/a.bs + 1 // the block with the archive's end is not written before the commit
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

// ErrNoTrim says that the drive takes no room back.
var ErrNoTrim = errors.New("drive takes no room back")

// Trim gives the drive back the room of everything behind the archive's end, which no member needs: what a Put that was
// killed left. It returns how many bytes of the drive that are, whether or not they held anything. No member is
// touched.
func (v *Volume) Trim(ctx context.Context) (int64, error) {
	d, ok := v.dev.(deallocator)
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
	bs := int64(v.dev.BlockSize())
	first, total := roundUp(end+2*sector, bs)/bs, v.dev.Size()/bs
	if first >= total {
		return 0, nil
	}
	if err := d.Deallocate(ctx, uint64(first), uint64(total-first)); err != nil {
		return 0, fmt.Errorf("volume: trim: %w", err)
	}
	if err := v.dev.Flush(ctx); err != nil {
		return 0, fmt.Errorf("volume: trim: %w", err)
	}
	return (total - first) * bs, nil
}
