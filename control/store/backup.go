package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// ErrBackup says that a file is not a backup of a control plane, or a damaged one.
var ErrBackup = errors.New("backup of a control plane")

// Snapshot writes all of etcd's data, as of now, to w: a backup in etcd's own snapshot format, which ends with its
// SHA-256. It needs a majority, so that the backup has every write that was acknowledged before the call.
func (s *Store) Snapshot(ctx context.Context, w io.Writer) error {
	// A linearizable read returns when this member has applied all entries of the majority.
	if _, err := s.client.Get(ctx, s.key("format")); err != nil {
		return fmt.Errorf("back up: %w", words(err))
	}
	r, err := s.client.SnapshotWithVersion(ctx)
	if err != nil {
		return fmt.Errorf("back up: %w", words(err))
	}
	if _, err := io.Copy(w, r.Snapshot); err != nil {
		return errors.Join(fmt.Errorf("back up: %w", err), r.Snapshot.Close())
	}
	return r.Snapshot.Close()
}

// Backup describes the contents of a backup.
type Backup struct {
	File     string `json:"file"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"` // SHA256 is the digest of the database, which the file ends with.
	Revision int64  `json:"revision"`
	Jobs     int    `json:"jobs"` // ended ones too
	Nodes    int    `json:"nodes"`

	first uint64 // fences are counted from it, see Term.number; 0: no member has led yet
}

// bucket is where etcd keeps the revisions of keys; a revision is 17 bytes, and a deletion has one more.
var bucket = []byte("key")

const (
	revisionBytes = 17
	sector        = 512 // a database is a multiple of it
)

// ReadBackup checks a backup against its checksum and describes its contents. The error wraps ErrBackup if the file
// is not an intact backup.
func ReadBackup(path string) (Backup, error) {
	b := Backup{File: path}
	if err := b.checksum(); err != nil {
		return b, err
	}
	if err := b.contents(); err != nil {
		return b, err
	}
	return b, nil
}

// checksum compares the file with the SHA-256 at its end.
func (b *Backup) checksum() (err error) {
	info, err := os.Stat(b.File)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return fmt.Errorf("%w: %s is not a regular file", ErrBackup, b.File)
	}
	f, err := os.Open(b.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err = f.Stat(); err != nil {
		return err
	}
	b.Bytes = info.Size()
	if b.Bytes < sector || b.Bytes%sector != sha256.Size {
		return fmt.Errorf("%w: %s has %d bytes, which no backup has: it was cut short, or is something else", ErrBackup,
			b.File, b.Bytes)
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, f, b.Bytes-sha256.Size); err != nil {
		return err
	}
	want, err := io.ReadAll(io.LimitReader(f, sha256.Size))
	if err != nil {
		return err
	}
	b.SHA256 = fmt.Sprintf("%x", sum.Sum(nil))
	if got := fmt.Sprintf("%x", want); got != b.SHA256 {
		return fmt.Errorf("%w: %s is damaged: its checksum is %s and its contents have %s; use another copy of it, "+
			"or an older one", ErrBackup, b.File, got, b.SHA256)
	}
	return nil
}

// contents reads the keys that live.
func (b *Backup) contents() (err error) {
	// The database's reader panics on pages that make no sense, and reads beyond the file where a page points there.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %s: its database cannot be read: %v", ErrBackup, b.File, p)
		}
	}()
	db, err := bolt.Open(b.File, 0o400, &bolt.Options{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrBackup, b.File, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	values := map[string][]byte{}
	err = db.View(func(tx *bolt.Tx) error {
		keys := tx.Bucket(bucket)
		if keys == nil {
			return errors.New("it is not an etcd's database")
		}
		return keys.ForEach(func(k, v []byte) error {
			if len(k) < revisionBytes {
				return fmt.Errorf("a revision of %d bytes", len(k))
			}
			var kv mvccpb.KeyValue
			if err := proto.Unmarshal(v, &kv); err != nil {
				return err
			}
			for i, revision := 0, int64(0); i < 8; i++ {
				if revision = revision<<8 | int64(k[i]); i == 7 {
					b.Revision = max(b.Revision, revision)
				}
			}
			name, ours := strings.CutPrefix(string(kv.Key), DefaultPrefix+"/")
			switch {
			case !ours:
			case len(k) > revisionBytes:
				delete(values, name)
			default:
				values[name] = slices.Clone(kv.Value[:min(len(kv.Value), 64)])
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrBackup, b.File, err)
	}
	return b.count(values)
}

// count counts the keys by kind.
func (b *Backup) count(values map[string][]byte) error {
	switch format, ok := values["format"]; {
	case !ok:
		return fmt.Errorf("%w: %s is an etcd's, and holds no control plane under %s", ErrBackup, b.File, DefaultPrefix)
	case string(format) != Format:
		return fmt.Errorf("%w: %s: %w: %q, this build reads %q", ErrBackup, b.File, ErrFormat, format, Format)
	}
	if first, ok := values[fencesKey]; ok {
		n, err := strconv.ParseUint(string(first), 10, 64)
		if err != nil {
			return fmt.Errorf("%w: %s: key %s: %w", ErrBackup, b.File, fencesKey, err)
		}
		b.first = n
	}
	for name := range values { // package record names them
		switch kind, rest, _ := strings.Cut(name, "/"); {
		case kind == "node":
			b.Nodes++
		case kind == "job" && strings.HasSuffix(rest, "/spec"):
			b.Jobs++
		}
	}
	return nil
}
