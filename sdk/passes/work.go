package passes

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/filelock"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/dataset"
)

// Names in a work folder.
const (
	descriptionName = "pass.json"
	lockName        = "lock"
	temporaryName   = "temporary"
	partPrefix      = "part-"
)

// descriptionVersion is the version of pass.json that this program writes and reads.
const descriptionVersion = 3

// Fact is something that identifies a pass: a work folder is refused to a pass of other facts.
type Fact struct {
	What string `json:"what"` // What is what an error says, behind "another".
	Is   string `json:"is"`
}

// List returns the fact of a list of patterns.
func List(what string, patterns []string) Fact {
	if len(patterns) == 0 {
		return Fact{what, "none"}
	}
	return Fact{what, strings.Join(patterns, ", ")}
}

// description is pass.json: what a pass is, and what its parts hold. It is replaced as a whole.
type description struct {
	Version int            `json:"version"`
	Facts   []Fact         `json:"facts"`
	JobName string         `json:"job_name"`        // JobName names every job of the pass.
	Token   *dataset.Token `json:"token,omitempty"` // Token says what the parts hold; absent: no job has begun yet.
	Parts   []part         `json:"parts,omitempty"`
	Written int            `json:"parts_written"` // Written counts the parts, those that were merged or replaced too.
	Made    any            `json:"made,omitempty"`
}

// part is a file of a work folder with what a reducer has folded in.
type part struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	Merged int    `json:"merged,omitempty"` // Merged is how often parts were merged into it.
}

// Work is a work folder that this process uses alone, or none, which keeps nothing.
type Work struct {
	path        string // "": there is none
	disk        int64
	logger      *slog.Logger
	lock        *filelock.Held // nil: it was released
	description description
}

// OpenWork opens the work folder for a pass of some kind over the data of a source, or makes it. made, if it is not
// nil, is a pointer: what NoteMade writes, and what an earlier call wrote is read into it before the pass's own facts
// are asked for.
func (o *Options) OpenWork(kind string, source Source, made any, facts func() []Fact) (_ *Work, err error) {
	w := &Work{path: o.Work, disk: o.Disk, logger: o.Logger}
	if w.logger == nil {
		w.logger = slog.New(slog.DiscardHandler)
	}
	if o.Disk < 0 || o.Every < 0 {
		return nil, fmt.Errorf("%w: disk %d, a part every %v: give numbers that are not negative", ErrOptions, o.Disk,
			o.Every)
	}
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	w.description = description{Version: descriptionVersion, JobName: kind + "-" + hex.EncodeToString(random[:]),
		Made: made}
	if w.path == "" {
		return w, nil
	}
	if err := os.MkdirAll(w.path, 0o700); err != nil {
		return nil, err
	}
	w.lock, err = filelock.Hold(filepath.Join(w.path, lockName))
	if errors.Is(err, filelock.ErrLocked) {
		return nil, fmt.Errorf("%s: %w", w.path, ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", w.path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	isNew, err := w.readDescription()
	if err != nil {
		return nil, err
	}
	identity := slices.Concat([]Fact{{"kind", kind}}, facts(), source.Facts())
	if isNew {
		w.description.Facts = identity
		err = w.writeDescription()
	} else if err = w.compare(identity); err == nil {
		err = w.checkParts()
	}
	if err != nil {
		return nil, err
	}
	if err := w.removeStrays(); err != nil {
		return nil, err
	}
	return w, os.Mkdir(w.Temporary(), 0o700)
}

// Temporary returns the folder of this process's files. It is empty if the pass has no work folder.
func (w *Work) Temporary() string {
	if w.path == "" {
		return ""
	}
	return filepath.Join(w.path, temporaryName)
}

// Close lets other processes use the folder.
func (w *Work) Close() error {
	if w.lock == nil {
		return nil
	}
	return w.lock.Unlock()
}

// Remove removes the pass's files, and the folder if nothing else is in it. The parts are forgotten first: whenever the
// process ends, pass.json names no part that is not there.
func (w *Work) Remove() error {
	if w.path == "" {
		return nil
	}
	w.description.Parts, w.description.Token = nil, nil
	if err := w.writeDescription(); err != nil {
		return err
	}
	if err := w.removeStrays(); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(w.path, descriptionName)); err != nil {
		return err
	}
	if err := w.lock.Release(); err != nil {
		return err
	}
	w.lock = nil
	// From now on another process may use the folder, or remove it.
	err := os.Remove(w.path)
	if left, rerr := os.ReadDir(w.path); len(left) > 0 || errors.Is(rerr, fs.ErrNotExist) {
		return nil
	}
	return err
}

// readDescription reads pass.json, and reports whether there is none because the folder is new.
func (w *Work) readDescription() (isNew bool, err error) {
	b, err := os.ReadFile(filepath.Join(w.path, descriptionName))
	if errors.Is(err, fs.ErrNotExist) {
		return true, w.refuseStrangers()
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(b, &w.description); err != nil {
		return false, w.damaged(fmt.Errorf("%s: %w", descriptionName, err))
	}
	return false, nil
}

// refuseStrangers returns an error if a folder without pass.json is not empty: it is not a work folder.
func (w *Work) refuseStrangers() error {
	list, err := os.ReadDir(w.path)
	for _, entry := range list {
		// wholefile writes pass.json beside its name first.
		if name := entry.Name(); name != lockName && !strings.Contains(name, descriptionName) {
			return w.damaged(fmt.Errorf("there is %s, and no %s: name an empty folder, or one that is not there", name,
				descriptionName))
		}
	}
	return err
}

// removeStrays removes the temporary files, files that did not get their name, and parts that pass.json does not name:
// a process that was killed left them.
func (w *Work) removeStrays() error {
	list, err := os.ReadDir(w.path)
	if err != nil {
		return err
	}
	for _, entry := range list {
		name := entry.Name()
		named := slices.ContainsFunc(w.description.Parts, func(p part) bool { return p.Name == name })
		if name == temporaryName || strings.HasSuffix(name, ".partial") || strings.HasPrefix(name, partPrefix) && !named {
			if err := os.RemoveAll(filepath.Join(w.path, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare returns an *OtherPassError if the folder was begun by another pass.
func (w *Work) compare(identity []Fact) error {
	have := w.description.Facts
	if w.description.Version != descriptionVersion {
		return &OtherPassError{Folder: w.path, What: "version of its form", Have: fmt.Sprint(w.description.Version),
			Want: fmt.Sprint(descriptionVersion)}
	}
	for i, want := range identity {
		if i == len(have) || have[i].What != want.What {
			return w.damaged(fmt.Errorf("%s does not say the %s", descriptionName, want.What))
		}
		if have[i].Is != want.Is {
			return &OtherPassError{Folder: w.path, What: want.What, Have: have[i].Is, Want: want.Is}
		}
	}
	return nil
}

// checkParts returns an error if pass.json names parts that no pass wrote: a part that lies elsewhere would be read,
// merged and removed there, and without a token the mini-batches of the parts would be folded in again.
func (w *Work) checkParts() error {
	d := &w.description
	if len(d.Parts) > 0 && d.Token == nil {
		return w.damaged(fmt.Errorf("%s names %d parts and lacks the token of their mini-batches", descriptionName,
			len(d.Parts)))
	}
	last := 0
	for i := range d.Parts {
		p := &d.Parts[i]
		number, err := strconv.Atoi(strings.TrimPrefix(p.Name, partPrefix))
		if err != nil || p.Name != partName(number) {
			return w.damaged(fmt.Errorf("%s names the part %q, where %q would be a name", descriptionName, p.Name,
				partName(1)))
		}
		if number <= last || number > d.Written {
			return w.damaged(fmt.Errorf("%s names the part %s behind part %d, and its parts_written is %d", descriptionName,
				p.Name, last, d.Written))
		}
		if p.Bytes < 0 || p.Merged < 0 {
			return w.damaged(fmt.Errorf("%s says of the part %s that it has %d bytes and was merged %d times",
				descriptionName, p.Name, p.Bytes, p.Merged))
		}
		last = number
	}
	return nil
}

// writeDescription writes pass.json.
func (w *Work) writeDescription() error {
	return w.DiskError(w.path, "the description of the pass",
		wholefile.WriteJSON(filepath.Join(w.path, descriptionName), &w.description))
}

// NoteMade writes to pass.json what a pass has made, before the file gets its name.
func (w *Work) NoteMade() error {
	if w.path == "" {
		return nil
	}
	return w.writeDescription()
}

// damaged adds the folder to the error of its files.
func (w *Work) damaged(err error) error { return fmt.Errorf("%s: %w: %w", w.path, ErrWork, err) }

// otherData adds to the error of a job over other data what to do.
func (w *Work) otherData(err error) error {
	if w.path != "" && errors.Is(err, dataset.ErrOtherJob) {
		return fmt.Errorf("%s: the data or the columns of the cluster are no longer those that the pass began with: name "+
			"its partitions (--partitions), or remove the folder to begin again: %w", w.path, err)
	}
	return err
}

// beginJob notes the first job of the pass, and refuses another job than that.
func (w *Work) beginJob(job dataset.Digest) error {
	have := w.description.Token
	switch {
	case w.path == "":
		return nil
	case have == nil:
		w.description.Token = &dataset.Token{Job: job}
		return w.writeDescription()
	case have.Job != job:
		return w.otherData(fmt.Errorf("%w: it is of %v, and this is %v", dataset.ErrOtherJob, have.Job, job))
	}
	return nil
}

// covered returns the numbers of the mini-batches that are in the parts.
func (w *Work) covered() []dataset.Range {
	if w.description.Token == nil {
		return nil
	}
	return w.description.Token.Acknowledged()
}
