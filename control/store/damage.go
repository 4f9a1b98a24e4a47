package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// ErrDamaged says that the files of the embedded member were changed, by a disk or by another program.
var ErrDamaged = errors.New("the control plane's files are damaged")

// ErrInUse says that another process has the data folder open.
var ErrInUse = errors.New("another process has the folder open: is another member running?")

// lockWait is how long another process may hold the database while it ends.
const lockWait = 5 * time.Second

// examine reads the files of a member before etcd does. etcd ends the process if it finds the files damaged, in part
// from goroutines of its own, and does not notice that the end of a log is missing. A folder without a member is
// accepted.
func examine(dir string, lg *zap.Logger) (err error) {
	// A read of a page that the file no longer has is a memory fault.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	member := filepath.Join(dir, "member")
	applied, err := examineDatabase(filepath.Join(member, "snap", "db"))
	if err != nil {
		return err
	}
	logs := filepath.Join(member, "wal")
	if !wal.Exist(logs) {
		if applied > 0 {
			return fmt.Errorf("%w: the database has entry %d of a log, and %s has no log", ErrDamaged, applied, logs)
		}
		return nil
	}
	return examineLog(logs, applied, lg)
}

// examineDatabase checks every page of etcd's database, and returns the last entry of the log that it holds; 0 if there
// is not a database yet.
func examineDatabase(path string) (applied uint64, err error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && st.Size() == 0 {
		return 0, nil // a start that was killed leaves an empty database
	}
	if err != nil {
		return 0, err
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: lockWait})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return 0, fmt.Errorf("%s: %w", path, ErrInUse)
	case isOfMachine(err):
		return 0, err
	case err != nil:
		return 0, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	err = db.View(func(tx *bolt.Tx) error {
		if tx.Size() > st.Size() {
			return fmt.Errorf("it has %d bytes of %d", st.Size(), tx.Size())
		}
		// The check of package bolt runs in goroutines whose panics end the process.
		if err := tx.ForEach(func(_ []byte, b *bolt.Bucket) error { return examineBucket(b) }); err != nil {
			return err
		}
		if b := tx.Bucket(schema.Meta.Name()); b != nil {
			if v := b.Get(schema.MetaConsistentIndexKeyName); len(v) == 8 {
				applied = binary.BigEndian.Uint64(v)
			}
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	return applied, errors.Join(err, db.Close())
}

// examineBucket reads every key of a bucket, which are in order, and every value.
func examineBucket(b *bolt.Bucket) error {
	var before []byte
	sum := byte(0)
	err := b.ForEach(func(k, v []byte) error {
		if before != nil && bytes.Compare(before, k) >= 0 {
			return fmt.Errorf("key %.40q lies behind %.40q", k, before)
		}
		before = k
		for i := 0; i < len(v); i += os.Getpagesize() {
			sum ^= v[i] // a missing page is a memory fault, which examine catches
		}
		if v == nil {
			return examineBucket(b.Bucket(k))
		}
		return nil
	})
	runtime.KeepAlive(sum)
	return err
}

// examineLog reads the log of raft. A crash may have cut off the last entries, but no entry that was committed or is in
// the database.
func examineLog(dir string, applied uint64, lg *zap.Logger) error {
	damaged := func(err error) error {
		if isOfMachine(err) {
			return err
		}
		return fmt.Errorf("%w: log in %s: %w", ErrDamaged, dir, err)
	}
	snaps, err := wal.ValidSnapshotEntries(lg, dir)
	if err != nil {
		return damaged(err)
	}
	from := &walpb.Snapshot{}
	if len(snaps) > 0 {
		from = snaps[len(snaps)-1]
	}
	w, err := wal.OpenForRead(lg, dir, from)
	if err != nil {
		return damaged(err)
	}
	_, state, entries, err := w.ReadAll()
	if cerr := w.Close(); !errors.Is(cerr, fs.ErrInvalid) { // a log that is only read has no folder to close
		err = errors.Join(err, cerr)
	}
	if err != nil {
		return damaged(err)
	}
	last := from.GetIndex()
	if len(entries) > 0 {
		last = max(last, entries[len(entries)-1].GetIndex())
	}
	if known := max(applied, state.GetCommit()); known > last {
		return damaged(fmt.Errorf("it ends at entry %d, and entry %d was committed", last, known))
	}
	return nil
}

// recovery returns advice to an operator on damaged files.
func (o *Options) recovery() string {
	if len(o.Peers) > 1 || o.Join {
		return "the other members have all of it: take this member out (millrace control members remove " + o.Name +
			"), add it again, and start it with an empty folder"
	}
	return "move the folder away and restore it from a backup (millrace control restore), or begin with an empty " +
		"one: jobs are then lost, data on drives is not"
}

// startEtcd starts the member. If etcd would end the process because of the contents of the folder, startEtcd returns
// an error. Files that etcd opened before may stay locked in this process.
func startEtcd(c *embed.Config) (e *embed.Etcd, err error) {
	defer func() {
		if p := recover(); p != nil {
			e, err = nil, fatalError(fmt.Sprint(p))
		}
	}()
	return embed.StartEtcd(c)
}

// fatalError returns the error for a text with which etcd gives up.
func fatalError(text string) error {
	for _, e := range ofMachine {
		if strings.Contains(text, e.Error()) {
			return fmt.Errorf("etcd cannot run: %s: keep the files, make room or remove the cause, and start again",
				text)
		}
	}
	return fmt.Errorf("%w: etcd cannot run on them: %s", ErrDamaged, text)
}

// ofMachine are the errors of files that are about the machine, and say nothing of what the files hold.
var ofMachine = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EPERM,
	syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM}

func isOfMachine(err error) bool {
	return slices.ContainsFunc(ofMachine, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// fatalHook turns a line of etcd's log after which etcd ends the process into an error of startEtcd. Outside startEtcd
// it logs that error, with what to do, and the process ends.
type fatalHook struct {
	logger *slog.Logger
	exit   func(code int)
}

var _ zapcore.CheckWriteHook = fatalHook{}

// OnWrite panics with the line below startEtcd.
func (h fatalHook) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	text := e.Message
	for _, a := range attrs(fields) {
		text += fmt.Sprintf(", %s: %v", a.Key, a.Value)
	}
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "/store.startEtcd") {
			panic(text)
		}
		if !more {
			h.logger.Error("the control plane ends", "error", fatalError(text))
			h.exit(1)
			return
		}
	}
}
