package summaries

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// part is a file of a work folder: what the parts from one number to another one hold together.
type part struct {
	first, last int
	file        *vocabulary.PartialFile
	numbers     []dataset.Range // numbers says which mini-batches are in it
}

// mergedParts is how many parts of one level are merged into one.
const mergedParts = 16

// level returns how often parts were merged into the part.
func (p *part) level() (level int) {
	for span := p.last - p.first + 1; span >= mergedParts; span /= mergedParts {
		level++
	}
	return level
}

// partName returns the name of a part's file.
func partName(first, last int) string { return fmt.Sprintf("part-%08d-%08d", first, last) }

var partNames = regexp.MustCompile(`^part-(\d{8})-(\d{8})$`)

// readParts reads the parts of the folder. It removes files that a process left that was killed: unfinished ones, and
// parts that were merged into a part that is there.
func (f *folder) readParts() error {
	list, err := os.ReadDir(f.path)
	if err != nil {
		return err
	}
	for _, entry := range list {
		name := entry.Name()
		if strings.HasSuffix(name, ".partial") {
			if err := os.Remove(filepath.Join(f.path, name)); err != nil {
				return err
			}
		}
		if m := partNames.FindStringSubmatch(name); m != nil {
			p := part{file: &vocabulary.PartialFile{Path: filepath.Join(f.path, name)}}
			p.first, _ = strconv.Atoi(m[1])
			p.last, _ = strconv.Atoi(m[2])
			f.parts = append(f.parts, p)
		}
	}
	// Of parts that begin with the same number the longest comes first.
	slices.SortFunc(f.parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(b.last, a.last))
	})
	kept := f.parts[:0]
	end := 0 // last number of the parts before
	for _, p := range f.parts {
		if p.last <= end {
			if err := os.Remove(p.file.Path); err != nil {
				return err
			}
			continue
		}
		if p.first != end+1 {
			return fmt.Errorf("%s: %w: %s follows part %d", f.path, ErrWork, filepath.Base(p.file.Path), end)
		}
		if err := f.readPart(&p); err != nil {
			return err
		}
		end = p.last
		kept = append(kept, p)
	}
	f.parts = kept
	_, err = f.covered()
	return err
}

// readPart reads a part's file and the token in it.
func (f *folder) readPart(p *part) (err error) {
	if p.file, err = vocabulary.OpenPartial(p.file.Path); err != nil {
		return fmt.Errorf("%w: %w", ErrWork, err)
	}
	var token dataset.Token
	if err := token.UnmarshalBinary(p.file.Note); err != nil {
		return fmt.Errorf("%s: %w: %w", p.file.Path, ErrWork, err)
	}
	if f.description.Job == "" || token.Job != f.description.job {
		return fmt.Errorf("%s: %w: it is of job %v", p.file.Path, ErrWork, token.Job)
	}
	p.numbers = token.Acknowledged()
	return nil
}

// covered returns the numbers of the mini-batches that are in the parts.
func (f *folder) covered() (all []dataset.Range, err error) {
	for i := range f.parts {
		p := &f.parts[i]
		if both := dataset.IntersectRanges(all, p.numbers); len(both) > 0 {
			return nil, fmt.Errorf("%s: %w: mini-batch %d is in another part, too", p.file.Path, ErrWork, both[0].From)
		}
		all = dataset.UnionRanges(all, p.numbers)
	}
	return all, nil
}

// token returns the token of some mini-batches.
func (f *folder) token(numbers []dataset.Range) ([]byte, error) {
	t := dataset.Token{Job: f.description.job, Ranges: numbers}
	if len(numbers) > 0 && numbers[0].From == 0 {
		t.Mark, t.Ranges = numbers[0].To, numbers[1:]
	}
	return t.MarshalBinary()
}

// bytes returns the bytes of all parts.
func (f *folder) bytes() (n int64) {
	for i := range f.parts {
		n += f.parts[i].file.Bytes
	}
	return n
}

// entries returns how many keys all parts have, each counted in every part that has it.
func (f *folder) entries() (n int64) {
	for i := range f.parts {
		n += f.parts[i].file.Entries
	}
	return n
}

// add writes what a builder has folded in, of some mini-batches, as the next part.
func (f *folder) add(b *vocabulary.Builder, numbers []dataset.Range) error {
	p := part{first: 1, numbers: numbers}
	if n := len(f.parts); n > 0 {
		p.first = f.parts[n-1].last + 1
	}
	p.last = p.first
	token, err := f.token(numbers)
	if err != nil {
		return err
	}
	if p.file, err = b.WritePartial(filepath.Join(f.path, partName(p.first, p.last)), token); err != nil {
		return diskError(f.path, "a part of the pass", err)
	}
	f.parts = append(f.parts, p)
	return nil
}

// merge merges parts of one level until there are fewer than mergedParts of each.
func (f *folder) merge() error {
	for {
		n := len(f.parts)
		same := 0
		for same < n && f.parts[n-1-same].level() == f.parts[n-1].level() {
			same++
		}
		if same < mergedParts {
			return nil
		}
		if err := f.mergeLast(mergedParts); err != nil {
			return err
		}
	}
}

// mergeLast makes one part of the last n.
func (f *folder) mergeLast(n int) error {
	from := len(f.parts) - n
	old := slices.Clone(f.parts[from:])
	p := part{first: old[0].first, last: old[n-1].last}
	var files []*vocabulary.PartialFile
	wanted := int64(0)
	for i := range old {
		p.numbers = dataset.UnionRanges(p.numbers, old[i].numbers)
		files = append(files, old[i].file)
		wanted += old[i].file.Bytes
	}
	if err := wantRoom(f.path, "the merge of its parts", wanted); err != nil {
		return err
	}
	token, err := f.token(p.numbers)
	if err != nil {
		return err
	}
	p.file, err = vocabulary.MergePartials(filepath.Join(f.path, partName(p.first, p.last)), token, files...)
	if err != nil {
		return diskError(f.path, "the merge of its parts", err)
	}
	f.parts = append(f.parts[:from], p)
	var errs []error
	for _, file := range files { // a file that stays is removed when the folder is opened again
		errs = append(errs, os.Remove(file.Path))
	}
	return errors.Join(errs...)
}

// mergeAll makes one part of all.
func (f *folder) mergeAll() error {
	for len(f.parts) > 1 {
		if err := f.mergeLast(min(len(f.parts), vocabulary.MaxPartials)); err != nil {
			return err
		}
	}
	return nil
}

// bound keeps the parts within a bound of the folder's bytes, of which the parts take half: a merge and the order of
// the keys take as much again. Where merging leaves little of the half, it would soon be due again.
func (f *folder) bound(most int64) error {
	if most == 0 || f.bytes() <= most/2 {
		return nil
	}
	if err := f.mergeAll(); err != nil {
		return err
	}
	if n := f.bytes(); n > most/8*3 {
		return &RoomError{Folder: f.path, Doing: "more parts", Want: 2 * n, Have: most, Bound: true}
	}
	return nil
}

// wantRoom returns a *RoomError if a folder's disk has fewer free bytes than wanted.
func wantRoom(folder, doing string, wanted int64) error {
	free, err := freeBytes(folder)
	if err != nil {
		return fmt.Errorf("free room of %s: %w", folder, err)
	}
	if free < wanted {
		return &RoomError{Folder: folder, Doing: doing, Want: wanted, Have: free}
	}
	return nil
}
