package passes

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrOptions says that options of a pass are out of range or contradict each other.
var ErrOptions = errors.New("options of a pass")

// ErrInUse says that another process uses the work folder.
var ErrInUse = errors.New("another process uses the work folder: wait until it ends, or name another folder")

// ErrWork says that the files of a work folder contradict each other.
var ErrWork = errors.New("the work folder is damaged: remove it to begin again")

// OtherPassError says that a work folder was begun by another pass.
type OtherPassError struct {
	Folder     string
	What       string // What names what differs
	Have, Want string // Have is that of the folder's pass, Want that of this one
}

// Error implements error.
func (e *OtherPassError) Error() string {
	return fmt.Sprintf("%s: the folder is of a pass with another %s (%s, and now %s): name another folder for this pass, "+
		"or remove this one", e.Folder, e.What, e.Have, e.Want)
}

// RoomError says that a disk, or the bound of the work folder, has no room for what comes next. What was taken is kept.
type RoomError struct {
	Folder string
	Doing  string // Doing says what the room is for
	Want   int64  // bytes; 0: not known
	Have   int64  // bytes that are free, or that the bound leaves
	Bound  bool   // Have is what the bound leaves
	err    error  // err is why the write failed; nil: nothing was written
}

// Error implements error.
func (e *RoomError) Error() string {
	what := fmt.Sprintf("%s: no room for %s", e.Folder, e.Doing)
	if e.Want > 0 {
		what += fmt.Sprintf(" (%d bytes, and there are %d)", e.Want, e.Have)
	}
	if e.err != nil {
		what += ": " + e.err.Error()
	}
	if e.Bound {
		return what + ": raise the bound of the folder; what was taken is kept, and the same call goes on from it"
	}
	return what + ": make room on the disk; what was taken is kept, and the same call goes on from it"
}

// Unwrap returns the error of the write that failed.
func (e *RoomError) Unwrap() error { return e.err }

// DiskError makes a RoomError of the error of a full disk, if the pass keeps what was taken.
func (w *Work) DiskError(folder, doing string, err error) error {
	if w.path != "" && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
		return &RoomError{Folder: folder, Doing: doing, err: err}
	}
	return err
}
