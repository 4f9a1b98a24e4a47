package sdk

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/nvme"
)

// LostRange are bytes of namespace 1 that a drive has lost: they read as zeros that no host wrote.
type LostRange struct {
	Offset int64 `json:"offset_bytes"`
	Size   int64 `json:"size_bytes"`
}

// Lost returns the ranges that the drive reports as lost, in order. Of a drive that reports nothing no loss is known.
func (d *Device) Lost(ctx context.Context) ([]LostRange, error) {
	if d.info.Diskless {
		return nil, nil
	}
	l, err := d.SMART(ctx)
	if err != nil || l.CriticalWarning&nvme.WarningReliability == 0 {
		return nil, err
	}
	b, err := d.log(ctx, nvme.LogLost, nvme.AllNamespaces, nvme.LostLogSize)
	if isStatus(err, nvme.InvalidLogPage) || isStatus(err, nvme.InvalidField) {
		return nil, nil // of a drive of another kind
	}
	if err != nil {
		return nil, d.wrap("read what is lost", err)
	}
	blocks, err := nvme.UnmarshalLost(b)
	if errors.Is(err, nvme.ErrNoLostLog) {
		return nil, nil // another vendor's page
	}
	list := make([]LostRange, 0, len(blocks))
	total := uint64(d.info.Size) / uint64(d.info.BlockSize)
	for _, r := range blocks {
		if r.SLBA > total || r.Blocks > total-r.SLBA {
			beyond := fmt.Errorf("the drive names blocks %d+%d and has %d", r.SLBA, r.Blocks, total)
			return nil, d.wrap("read what is lost", beyond)
		}
		list = append(list, LostRange{
			Offset: int64(r.SLBA) * int64(d.info.BlockSize),
			Size:   int64(r.Blocks) * int64(d.info.BlockSize),
		})
	}
	return list, d.wrap("read what is lost", err)
}

// ErrNoDeallocate says that a drive does not deallocate blocks.
var ErrNoDeallocate = errors.New("drive does not deallocate blocks")

// Deallocate frees n blocks from block lba on. Their contents are gone: the blocks may read as anything, and as zeros
// on a drive of this project. An error wraps ErrNoDeallocate where the drive cannot, and ErrNoFlash where it has none.
func (d *Device) Deallocate(ctx context.Context, lba, n uint64) error {
	if d.info.Diskless {
		return d.wrap("deallocate", ErrNoFlash)
	}
	if total := uint64(d.info.Size) / uint64(d.info.BlockSize); lba > total || n > total-lba {
		return d.wrap("deallocate", fmt.Errorf("lba %d+%d of %d: %w", lba, n, total, nvme.LBAOutOfRange))
	}
	// A command takes well under a second: 1 GiB of a file is some thousand system calls.
	most := max(1, uint64(1<<30)/uint64(d.info.BlockSize))
	for n > 0 {
		part := min(n, most)
		cmd, data := nvme.Deallocate(dataNamespace, []nvme.DatasetRange{{Blocks: uint32(part), SLBA: lba}})
		_, err := d.queue.Submit(ctx, &cmd, data).Wait()
		if isStatus(err, nvme.InvalidOpcode) {
			err = ErrNoDeallocate
		}
		if err != nil {
			return d.wrap("deallocate", fmt.Errorf("lba %d: %w", lba, err))
		}
		lba, n = lba+part, n-part
	}
	return nil
}
