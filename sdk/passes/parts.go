package passes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/millrace/millrace/sdk/dataset"
)

const (
	// mergedParts is how many parts that were merged equally often are merged into one.
	mergedParts = 16
	// MaxMerged is how many parts are merged at once.
	MaxMerged = 64
)

// Parts returns the files of the parts, in their order.
func (w *Work) Parts() []string { return w.paths(w.description.Parts) }

// partName returns the name of the part that was written after number - 1 others.
func partName(number int) string { return fmt.Sprintf("%s%08d", partPrefix, number) }

func (w *Work) paths(parts []part) []string {
	paths := make([]string, len(parts))
	for i := range parts {
		paths[i] = filepath.Join(w.path, parts[i].Name)
	}
	return paths
}

// bytes returns the bytes of all parts.
func (w *Work) bytes() (n int64) {
	for i := range w.description.Parts {
		n += w.description.Parts[i].Bytes
	}
	return n
}

// writePart writes the next part with write, and takes it over in the place of the last parts, and with it their
// mini-batches and more.
func (w *Work) writePart(merged int, more []dataset.Range, write func(path string) (replaced int, err error)) error {
	d := &w.description
	d.Written++
	p := part{Name: partName(d.Written), Merged: merged}
	path := filepath.Join(w.path, p.Name)
	replaced, err := write(path)
	if err != nil {
		return w.DiskError(w.path, "a part of the pass", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	p.Bytes = info.Size()
	from := len(d.Parts) - replaced
	old := w.paths(d.Parts[from:])
	d.Parts = append(slices.Clip(d.Parts[:from]), p)
	covered := dataset.UnionRanges(w.covered(), more)
	d.Token = &dataset.Token{Job: d.Token.Job, Ranges: covered}
	if len(covered) > 0 && covered[0].From == 0 {
		d.Token.Mark, d.Token.Ranges = covered[0].To, covered[1:]
	}
	if err := w.writeDescription(); err != nil {
		return err
	}
	w.logger.Info("kept a part of a pass", "file", path, "bytes", p.Bytes)
	var errs []error
	for _, path := range old {
		errs = append(errs, os.Remove(path))
	}
	return errors.Join(errs...)
}

// keep has a reducer write what it folded in, of some mini-batches, and keeps the parts few and within the bound.
func (w *Work) keep(r Keeper, numbers []dataset.Range) error {
	err := w.writePart(0, numbers, func(path string) (replaced int, err error) {
		replaces, err := r.Keep(path)
		if replaces {
			replaced = 1
		}
		return replaced, err
	})
	if err != nil {
		return err
	}
	merger, ok := r.(Merger)
	for ok && w.sameMerged() == mergedParts {
		if err := w.merge(merger, mergedParts); err != nil {
			return err
		}
	}
	if w.disk == 0 || w.bytes() <= w.disk/2 {
		return nil
	}
	// Where merging leaves little of the half, it would soon be due again. A merge and what becomes of the parts take as
	// much again as the parts.
	if ok {
		if err := w.MergeAll(merger); err != nil {
			return err
		}
	}
	if n := w.bytes(); n > w.disk/8*3 {
		return &RoomError{Folder: w.path, Doing: "more parts", Want: 2 * n, Have: w.disk, Bound: true}
	}
	return nil
}

// sameMerged returns how many of the last parts were merged equally often, up to mergedParts.
func (w *Work) sameMerged() (n int) {
	parts := w.description.Parts
	for n < min(len(parts), mergedParts) && parts[len(parts)-1-n].Merged == parts[len(parts)-1].Merged {
		n++
	}
	return n
}

// merge makes one part of the last n.
func (w *Work) merge(m Merger, n int) error {
	old := w.description.Parts[len(w.description.Parts)-n:]
	wanted := int64(0)
	for i := range old {
		wanted += old[i].Bytes
	}
	if err := wantFree(w.path, "the merge of its parts", wanted); err != nil {
		return err
	}
	return w.writePart(old[0].Merged+1, nil, func(path string) (int, error) { return n, m.Merge(path, w.paths(old)) })
}

// MergeAll makes one part of all.
func (w *Work) MergeAll(m Merger) error {
	for len(w.description.Parts) > 1 {
		if err := w.merge(m, min(len(w.description.Parts), MaxMerged)); err != nil {
			return err
		}
	}
	return nil
}

// WantRoom returns a *RoomError if the bound of the work folder, or the disk of a folder, has fewer bytes than wanted.
// Without a work folder nothing is wanted.
func (w *Work) WantRoom(folder, doing string, wanted int64) error {
	if w.path == "" {
		return nil
	}
	if folder == "" {
		if folder = w.path; w.disk > 0 && w.disk < wanted {
			return &RoomError{Folder: folder, Doing: doing, Want: wanted, Have: w.disk, Bound: true}
		}
	}
	return wantFree(folder, doing, wanted)
}

// wantFree returns a *RoomError if a folder's disk has fewer free bytes than wanted.
func wantFree(folder, doing string, wanted int64) error {
	free, err := freeBytes(folder)
	if err != nil {
		return fmt.Errorf("free room of %s: %w", folder, err)
	}
	if free < wanted {
		return &RoomError{Folder: folder, Doing: doing, Want: wanted, Have: free}
	}
	return nil
}
