//go:build unix

package ownership

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Inherit gives a file, or a folder and all that is in it, to the owner and the group of another file or folder, if
// this process is root. It changes nothing where that is root's too.
func Inherit(made, from string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 && owner.Gid == 0 {
		return nil
	}
	return filepath.WalkDir(made, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(owner.Uid), int(owner.Gid))
	})
}

// Explain adds to an error that wraps fs.ErrPermission what an operator has to know: the user that runs this process,
// the owner of the file (or, where there is no file, of its folder), and the command that gives it to the process. It
// returns other errors unchanged.
func Explain(err error, path string) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	at, kind := path, "file"
	info, serr := os.Stat(at)
	if serr != nil {
		at, kind = filepath.Dir(path), "folder"
		info, serr = os.Stat(at)
	}
	me := name(uint32(os.Geteuid()))
	if serr != nil {
		return fmt.Errorf(
			"%w: this process runs as %s, which may not enter %s: give it the folders above, or run as their owner",
			err, me, at)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return err
	}
	pattern := at
	if kind == "file" {
		pattern += "*" // the files beside it belong to it
	}
	return fmt.Errorf("%w: this process runs as %s, and the %s %s belongs to %s with mode %04o: chown %s %s",
		err, me, kind, at, name(owner.Uid), info.Mode().Perm(), me, pattern)
}

// name is a user's name, or number where there is no name.
func name(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}
