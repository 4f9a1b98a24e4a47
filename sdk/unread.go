package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// unreadError is a move that failed, as the drive could not read a block of its flash.
type unreadError struct {
	at  uint64 // byte of the drive where the block begins
	lba uint64
	err error
}

func (e *unreadError) Error() string { return fmt.Sprintf("block %d: %v", e.lba, e.err) }
func (e *unreadError) Unwrap() error { return e.err }

// errorEntries is how many of the latest errors of a drive are looked at for the one that a command met.
const errorEntries = 8

// unread finds out which block a command could not read that moved blocks and failed with err; where the drive does not tell, it
// returns err as it is. A completion does not name the block: the drive's error log does.
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
			return &unreadError{at: e.LBA * uint64(d.dev.BlockSize()), lba: e.LBA, err: err}
		}
	}
	return err
}

// unreadPlace names the row group and the columns of the slice that a block which could not be read holds bytes of: two
// where one ends in it. It is empty where that is not known.
func (w *worker) unreadPlace(err error) string {
	var u *unreadError
	if !errors.As(err, &u) || w.part.File == nil {
		return ""
	}
	var names []string
	group := 0
	for _, i := range w.seated {
		c := w.jobs[i].c
		lo, hi := w.geo.cover(c.at, c.at+c.length)
		for _, m := range w.geo.moves(nil, lo, hi, 0) {
			if m.From <= u.at && u.at-m.From < m.Len && !slices.Contains(names, w.nameOf(c)) {
				names, group = append(names, w.nameOf(c)), w.groupOf(c)
			}
		}
	}
	if names == nil {
		return ""
	}
	return fmt.Sprintf(": row group %d: column %s", group, strings.Join(names, " or "))
}
