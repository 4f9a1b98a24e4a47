package summaries

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/filelock"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// Names in a work folder.
const (
	descriptionName = "pass.json"
	lockName        = "lock"
	temporaryName   = "temporary"
)

// descriptionVersion is the version of pass.json that this program writes and reads.
const descriptionVersion = 2

// description is pass.json: what a pass is. The first block is known when the pass begins and identifies the pass, the
// second one when its job was submitted.
type description struct {
	Version    int      `json:"version"`
	Vocabulary string   `json:"vocabulary,omitempty"` // its name in the pipeline; absent: the pass makes statistics
	Rules      string   `json:"rules,omitempty"`
	Statistics string   `json:"statistics_sha256,omitempty"` // Statistics is taken over the description of the columns
	Pipeline   string   `json:"pipeline_sha256"`             // Pipeline is taken over the document that is submitted
	Extends    string   `json:"extends,omitempty"`
	Partitions []string `json:"partitions,omitempty"`
	Exclude    []string `json:"exclude,omitempty"`
	JobName    string   `json:"job_name"` // JobName names every job that the pass submits

	Job         string            `json:"job_digest,omitempty"` // absent: no job of the pass has run yet
	MiniBatches uint64            `json:"mini_batches,omitempty"`
	Rows        int64             `json:"rows,omitempty"`
	Columns     []describedColumn `json:"columns,omitempty"`
	Read        []readPartition   `json:"read,omitempty"`   // the partitions that the job of a vocabulary reads
	Writes      string            `json:"writes,omitempty"` // the file that is being written, of all parts
	Made        *madeVocabulary   `json:"made,omitempty"`   // what the file holds once it is written

	job     dataset.Digest      // Job, read
	columns []vocabulary.Column // Columns, read
}

// readPartition is a partition that a pass reads.
type readPartition struct {
	Name    string         `json:"name"`
	Content dataset.Digest `json:"content_sha256"`
}

// madeVocabulary is a vocabulary in pass.json that is about to get its name.
type madeVocabulary struct {
	Digest string      `json:"sha256"`
	Bytes  int64       `json:"bytes"`
	Tables []madeTable `json:"tables"`
}

// madeTable is a table of the vocabulary in pass.json.
type madeTable struct {
	Keys     int64 `json:"keys"`
	Seen     int64 `json:"seen"`
	Appended int64 `json:"appended"`
}

// describedColumn is a column of the vocabulary in pass.json.
type describedColumn struct {
	Name  string `json:"name"`
	Chain string `json:"chain_sha256"`
}

// readDigests reads the digests that the description holds as text.
func (d *description) readDigests() error {
	read := func(digest []byte, text string) error {
		b, err := hex.DecodeString(text)
		if err == nil && len(b) != len(digest) {
			err = fmt.Errorf("a digest of %d bytes, want %d", len(b), len(digest))
		}
		copy(digest, b)
		return err
	}
	if d.Job == "" {
		return nil
	}
	if err := read(d.job[:], d.Job); err != nil {
		return err
	}
	for _, column := range d.Columns {
		c := vocabulary.Column{Name: column.Name}
		if err := read(c.Chain[:], column.Chain); err != nil {
			return err
		}
		d.columns = append(d.columns, c)
	}
	return nil
}

// folder is a work folder that this process uses alone.
type folder struct {
	path        string
	lock        *filelock.Held // nil: it was released
	description description
	parts       []part // in the order of their numbers
}

// openFolder opens a folder for a pass, or makes it, and reads what is in it.
func openFolder(path string, pass description) (_ *folder, err error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	lock, err := filelock.Hold(filepath.Join(path, lockName))
	if errors.Is(err, filelock.ErrLocked) {
		return nil, fmt.Errorf("%s: %w", path, ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	f := &folder{path: path, lock: lock}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	if err := f.readDescription(pass); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(f.temporary()); err != nil {
		return nil, err
	}
	if err := os.Mkdir(f.temporary(), 0o700); err != nil {
		return nil, err
	}
	return f, f.readParts()
}

// temporary is the folder of this process's runs.
func (f *folder) temporary() string { return filepath.Join(f.path, temporaryName) }

// close lets other processes use the folder.
func (f *folder) close() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Unlock()
}

// remove removes the pass's files, and the folder if nothing else is in it. The last part goes first: whenever the
// process ends, the parts that are left follow each other from the first one on, as readParts wants them.
func (f *folder) remove() error {
	for _, p := range slices.Backward(f.parts) {
		if err := os.Remove(p.file.Path); err != nil {
			return err
		}
	}
	for _, name := range []string{temporaryName, descriptionName} {
		if err := os.RemoveAll(filepath.Join(f.path, name)); err != nil {
			return err
		}
	}
	if f.lock != nil {
		if err := f.lock.Release(); err != nil {
			return err
		}
		f.lock = nil
	}
	// From now on another process may use the folder, or remove it.
	err := os.Remove(f.path)
	if left, rerr := os.ReadDir(f.path); len(left) > 0 || errors.Is(rerr, fs.ErrNotExist) {
		return nil
	}
	return err
}

// readDescription reads pass.json and compares it with a pass, or writes it if the folder is new.
func (f *folder) readDescription(pass description) error {
	b, err := os.ReadFile(filepath.Join(f.path, descriptionName))
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.refuseStrangers(); err != nil {
			return err
		}
		f.description = pass
		return f.writeDescription()
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &f.description); err != nil {
		return fmt.Errorf("%s: %w: %s: %w", f.path, ErrWork, descriptionName, err)
	}
	if err := f.description.readDigests(); err != nil {
		return fmt.Errorf("%s: %w: %s: %w", f.path, ErrWork, descriptionName, err)
	}
	return f.compare(pass)
}

// refuseStrangers returns an error if a folder without pass.json is not empty: it is not a work folder.
func (f *folder) refuseStrangers() error {
	list, err := os.ReadDir(f.path)
	for _, entry := range list {
		// wholefile writes pass.json beside its name first.
		if name := entry.Name(); name != lockName && !strings.Contains(name, descriptionName) {
			return fmt.Errorf("%s: %w: there is %s, and no %s: name an empty folder, or one that is not there", f.path,
				ErrWork, name, descriptionName)
		}
	}
	return err
}

// compare returns an *OtherPassError if the folder was begun by another pass. A pass that replaces the vocabulary that
// it extends finds its own result there if it ended before it had removed the folder.
func (f *folder) compare(pass description) error {
	have := &f.description
	if have.Made != nil && have.Extends != "" && have.Made.Digest == pass.Extends {
		pass.Extends = have.Extends
	}
	list := func(patterns []string) string {
		if len(patterns) == 0 {
			return "none"
		}
		return strings.Join(patterns, ", ")
	}
	for _, field := range []struct{ what, have, want string }{
		{"version of its form", fmt.Sprint(have.Version), fmt.Sprint(pass.Version)},
		{"vocabulary", have.Vocabulary, pass.Vocabulary},
		{"set of rules", have.Rules, pass.Rules},
		{"pipeline before the vocabulary", have.Pipeline, pass.Pipeline},
		{"set of statistics", have.Statistics, pass.Statistics},
		{"vocabulary to extend", have.Extends, pass.Extends},
		{"choice of partitions", list(have.Partitions), list(pass.Partitions)},
		{"choice of partitions to leave out", list(have.Exclude), list(pass.Exclude)},
	} {
		if field.have != field.want {
			return &OtherPassError{Folder: f.path, What: field.what, Have: field.have, Want: field.want}
		}
	}
	return nil
}

// writeDescription writes pass.json.
func (f *folder) writeDescription() error {
	return diskError(f.path, "the description of the pass",
		wholefile.WriteJSON(filepath.Join(f.path, descriptionName), &f.description))
}

// noteMade writes to pass.json what a pass has made before the vocabulary gets its name.
func (f *folder) noteMade(made *vocabulary.Built) error {
	f.description.Made = &madeVocabulary{Digest: made.Digest.String(), Bytes: made.Bytes}
	for _, t := range made.Tables {
		f.description.Made.Tables = append(f.description.Made.Tables, madeTable(t))
	}
	return f.writeDescription()
}
