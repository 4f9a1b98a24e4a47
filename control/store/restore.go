package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"

	"github.com/millrace/millrace/internal/ownership"
	"github.com/millrace/millrace/internal/wholefile"
)

// RestoreOptions name the backup from which a member is made, and the folder of the member. File and Data are required.
type RestoreOptions struct {
	File string // the backup
	Data string // the new member's folder, which must hold no member
	// Name and Peers are the new member's, as in Options. Every member of a new cluster is restored from the same
	// backup, with the same Peers and the same Revision.
	Name  string
	Peers []string
	// Revision is the revision from which the restored etcd goes on counting; 0 means a revision above all that the
	// lost etcd can have reached.
	Revision int64
	Logger   *slog.Logger // nil: silent
}

// Restored describes the result of Restore.
type Restored struct {
	Backup
	Data     string `json:"data"`
	Revision int64  `json:"restored_revision"`
	Fence    uint64 `json:"fences_above"` // every later leader has a greater fence
}

// leastBump is the least distance of a restored etcd's revision from that of its backup: more changes than a control
// plane makes in weeks.
const leastBump = 1_000_000_000

// Restore makes the folder of a member from a backup. The member's etcd counts from a revision that the lost etcd
// cannot have reached. Fences are made of revisions, so that nodes refuse the leaders of the lost etcd. The folder
// appears whole or not at all.
func Restore(o RestoreOptions) (r Restored, err error) {
	fail := func(err error) (Restored, error) { return r, fmt.Errorf("restore %s: %w", o.File, err) }
	// The certificate is checked when the member is started.
	member := Options{Data: o.Data, Name: o.Name, Peers: o.Peers, Logger: o.Logger, Cert: "later"}.named()
	cluster, own, err := member.peers()
	if err != nil {
		return fail(err)
	}
	folder := filepath.Join(o.Data, "etcd")
	if _, err := os.Lstat(folder); err == nil {
		return fail(fmt.Errorf("%s is there already and is not touched: name another folder, or move it away: %w",
			folder, fs.ErrExist))
	}
	if r.Backup, err = ReadBackup(o.File); err != nil {
		return fail(err)
	}
	r.Data, r.Revision = o.Data, o.Revision
	if r.Revision == 0 {
		r.Revision = r.above(time.Now())
	}
	if r.Revision <= r.Backup.Revision {
		return fail(fmt.Errorf("--revision %d: the backup ends at %d: want more", r.Revision, r.Backup.Revision))
	}
	r.Fence = r.first + uint64(r.Revision)
	if err := os.MkdirAll(o.Data, 0o700); err != nil {
		return fail(err)
	}
	// An earlier attempt may have left a part of the folder.
	partial := folder + ".restoring"
	if err := os.RemoveAll(partial); err != nil {
		return fail(err)
	}
	err = snapshot.NewV3(zapLogger(member.Logger)).Restore(snapshot.RestoreConfig{
		SnapshotPath: o.File, OutputDataDir: partial, Name: member.Name, PeerURLs: []string{own.String()},
		InitialCluster: cluster,
		// Another token makes this another cluster, so that remaining members of the lost cluster cannot connect to it by
		// mistake.
		InitialClusterToken: fmt.Sprintf("millrace-%d", r.Revision),
		RevisionBump:        uint64(r.Revision - r.Backup.Revision), MarkCompacted: true,
	})
	if err != nil {
		return fail(errors.Join(err, os.RemoveAll(partial)))
	}
	if err := settle(partial, folder); err != nil {
		return fail(errors.Join(err, os.RemoveAll(partial)))
	}
	return r, nil
}

// above returns a revision from which on fences are greater than every earlier fence: greater than those that the clock
// allows, a million a second, and at least leastBump greater than the backup's.
func (b *Backup) above(now time.Time) int64 {
	byClock := int64(0)
	if fences := uint64(max(now.Unix(), 0)) << fenceBits; b.first > 0 && fences > b.first {
		byClock = int64(fences - b.first)
	}
	return max(b.Revision+leastBump, byClock)
}

// settle gives a finished folder its owner and its name, and makes both durable.
func settle(partial, folder string) error {
	parent := filepath.Dir(folder)
	if err := ownership.Inherit(partial, parent); err != nil {
		return err
	}
	return wholefile.Rename(partial, folder)
}
