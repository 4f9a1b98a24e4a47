package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/placement"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/wait"
)

// ErrOther says that a partition of the name lies on a drive with other bytes.
var ErrOther = errors.New("another file of the name is placed already")

// Place returns the copies that bring files to the drives, and the numbers of copies that are wanted from then on, for
// the control plane to keep. A file whose name and bytes lie on drives already needs only the copies that it lacks.
// replicas is the number of copies of each file; 0 means the number that was wanted before, or 1.
func (c *Cluster) Place(ctx context.Context, files []*File,
	replicas int) ([]placement.Copy, []*apiv1.PartitionCopies, error) {
	fresh := make([]placement.Partition, 0, len(files))
	for _, f := range files {
		if err := c.checkSame(ctx, f); err != nil {
			return nil, nil, err
		}
		p := placement.Partition{Name: f.Name, Bytes: f.Bytes, Rows: f.Rows, Copies: replicas}
		if p.Copies == 0 {
			p.Copies = max(1, int(c.wanted[f.Name].GetCopies()))
		}
		fresh = append(fresh, p)
	}
	copies, err := placement.Spread(c.drives, c.Partitions(nil), fresh)
	if err != nil {
		return nil, nil, err
	}
	return copies, c.Want(fresh), nil
}

// checkSame returns an error that wraps ErrOther if a partition of the file's name has other bytes than the file.
func (c *Cluster) checkSame(ctx context.Context, f *File) error {
	const do = "a placed partition never changes: place this file under another name (--prefix)"
	p := c.partitions[f.Name]
	if p == nil {
		return nil
	}
	r := c.Holders(f.Name)[0]
	if p.GetBytes() != f.Bytes || p.GetRows() != f.Rows || !bytes.Equal(p.GetContentSha256(), f.Content[:]) {
		return fmt.Errorf("partition %s on %s: %w: it has %s and %s, the file has %d and %d; %s", f.Name, r, ErrOther,
			quantity.Of(p.GetBytes(), "byte"), quantity.Of(p.GetRows(), "row"), f.Bytes, f.Rows, do)
	}
	// The digest covers samples, so two files of the same digest may have different rows. The checksum that the node
	// kept when the copy was put there then differs.
	s, err := c.sum(ctx, r, &apiv1.VerifyRequest{Drive: r.Drive, Partition: f.Name, KeptOnly: true})
	if err != nil {
		return err
	}
	have := s.Kept
	if len(have) == 0 {
		have = s.SHA256
	}
	if !bytes.Equal(have, f.sha256[:]) {
		return fmt.Errorf("partition %s on %s: %w: its SHA-256 is %x, the file's %x; %s", f.Name, r, ErrOther, have,
			f.sha256, do)
	}
	return nil
}

// Numbered sets the number of copies that are wanted of partitions: to replicas, or, if that is 0, to the number that
// is wanted already, or, if that is unknown, to what unset returns.
func (c *Cluster) Numbered(list []placement.Partition, replicas int,
	unset func(partition string) int) []placement.Partition {
	list = slices.Clone(list)
	for i := range list {
		p := &list[i]
		switch {
		case replicas > 0:
			p.Copies = replicas
		case p.Copies == 0:
			p.Copies = unset(p.Name)
		}
	}
	return list
}

// Below returns how many of the partitions are to have fewer copies than are wanted until now.
func (c *Cluster) Below(list []placement.Partition) (n int) {
	for _, p := range list {
		if p.Copies < int(c.wanted[p.Name].GetCopies()) {
			n++
		}
	}
	return n
}

// Want returns the records of wanted copies for those of the partitions whose number of copies, rows or bytes differ
// from the record that the control plane keeps.
func (c *Cluster) Want(partitions []placement.Partition) []*apiv1.PartitionCopies {
	var list []*apiv1.PartitionCopies
	for _, p := range partitions {
		if w := c.wanted[p.Name]; int(w.GetCopies()) != p.Copies || w.GetRows() != p.Rows || w.GetBytes() != p.Bytes {
			list = append(list, &apiv1.PartitionCopies{Partition: p.Name, Copies: uint32(p.Copies), Bytes: p.Bytes,
				Rows: p.Rows})
		}
	}
	return list
}

// Lists reports whether every one of the copies lies on its drive, as the control plane lists the drives.
func (c *Cluster) Lists(copies []placement.Copy) bool {
	return !slices.ContainsFunc(copies,
		func(k placement.Copy) bool { return !slices.Contains(c.Holders(k.Partition.Name), k.To) })
}

// Await calls look, with a pause between two calls, until it succeeds, or fails for good, or the time is over. look
// reports whether another call may help, and returns the error so far.
func Await(ctx context.Context, most time.Duration, look func() (again bool, err error)) error {
	pauses := wait.Backoff{First: 50 * time.Millisecond, Longest: time.Second}
	deadline := time.Now().Add(most)
	for {
		again, err := look()
		pause := pauses.Next()
		if err == nil || !again || time.Now().Add(pause).After(deadline) {
			return err
		}
		if ended := wait.Sleep(ctx, pause); ended != nil {
			return errors.Join(err, ended)
		}
	}
}
