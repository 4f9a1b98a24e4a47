package sdk

import (
	"context"
	"errors"
	"slices"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/sdk/target"
)

// errorEntries is how many of a drive's latest errors are searched for the error of a command.
const errorEntries = 8

// unread finds out which block could not be read by a command that moved blocks and failed with err. If the drive
// does not say, it returns err as it is. A completion does not name the block: the drive's error log does.
func (d *drive) unread(ctx context.Context, copies []cs.Copy, err error) error {
	if !errors.Is(err, nvme.UnrecoveredReadError) {
		return err
	}
	page, lerr := d.dev.log(ctx, nvme.LogErrors, nvme.AllNamespaces, errorEntries*nvme.ErrorEntrySize)
	if lerr != nil {
		return err
	}
	for _, e := range nvme.UnmarshalErrors(page) {
		in := func(k cs.Copy) bool { return k.SLBA <= e.LBA && e.LBA-k.SLBA < uint64(k.NLB) }
		if e.Status.Code() == nvme.UnrecoveredReadError && slices.ContainsFunc(copies, in) {
			return &target.UnreadBlockError{Device: e.LBA * uint64(d.dev.BlockSize()), LBA: e.LBA, Err: err}
		}
	}
	return err
}
