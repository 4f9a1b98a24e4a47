package csd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/millrace/millrace/fpga/csd/keptfile"
)

// Owner names the process that has a drive in a file open, and where that process answers questions about the drive.
// PATH.owner holds it while the drive is open; there is no file where no process answers.
type Owner struct {
	Process int      `json:"process"` // its number
	Name    string   `json:"name"`    // what it is, as "node n0"
	Drive   string   `json:"drive"`   // what it calls the drive
	URLs    []string `json:"urls"`    // URLs are those of the process, or of the drive itself where they begin with tcp:.
}

// maxOwner bounds the file, and maxOwnerURLs what of it is tried.
const (
	maxOwner     = 16 << 10
	maxOwnerURLs = 16
)

func ownerPath(path string) string { return path + ".owner" }

// BusyError says that a drive is open already. Owner is nil where the process that has it open has not called Own. It
// wraps ErrBusy.
type BusyError struct {
	Path  string
	Owner *Owner
}

// Error names the owner.
func (e *BusyError) Error() string {
	if e.Owner == nil {
		return ErrBusy.Error() + ": end the process that has it, or ask that process"
	}
	return fmt.Sprintf("%v: %s (process %d) has it, as %s", ErrBusy, e.Owner.Name, e.Owner.Process, e.Owner.Drive)
}

// Unwrap returns ErrBusy.
func (e *BusyError) Unwrap() error { return ErrBusy }

// lockedError makes the error of a drive that is locked.
func lockedError(path string) error {
	e := &BusyError{Path: path}
	if b, err := keptfile.Read(ownerPath(path), maxOwner); err == nil {
		e.Owner = parseOwner(b)
	}
	return e
}

// parseOwner reads what an owner has written; nil where that makes no sense.
func parseOwner(b []byte) *Owner {
	o := new(Owner)
	if err := json.Unmarshal(b, o); err != nil || o.Process <= 0 || o.Name == "" || o.Drive == "" ||
		len(o.URLs) > maxOwnerURLs {
		return nil
	}
	return o
}

// Own writes PATH.owner, so that processes that find the drive open can ask this one about it. Close removes the file.
// For a drive that is not in a file it does nothing.
func (d *Drive) Own(o Owner) error {
	if d.opt.Path == "" {
		return nil
	}
	o.Process = os.Getpid()
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := keptfile.Replace(ownerPath(d.opt.Path), append(b, '\n'), d.opt.atStep, "owner"); err != nil {
		return fmt.Errorf("drive %s: tell who has it: %w", d.logName(), err)
	}
	return nil
}

// removeOwnerFile removes PATH.owner. The caller holds the drive's lock; a process that was killed leaves the file.
func removeOwnerFile(path string) error {
	if err := os.Remove(ownerPath(path)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
