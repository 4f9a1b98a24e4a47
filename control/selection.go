package control

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/store"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/jobfiles"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/selection"
)

// errNoSelections says that a member can make no selection.
var errNoSelections = errors.New("this control plane keeps no selections, which pipelines with a filter need: start " +
	"it with --data, or name a folder with --vocabularies")

// filters reports whether the pipeline of the edition has a filter.
func (g *edition) filters() bool { return g.resolved.Filter != nil }

// needsSelection reports whether it is not known yet which rows of the edition pass the pipeline's filter. Such an
// edition has no digest.
func (g *edition) needsSelection() bool { return g.filters() && g.Selection == nil }

// rows returns how many rows the mini-batches of an epoch are made of, dropped tails included.
func (g *edition) rows() int64 {
	if g.Passing == nil {
		return g.data.Manifest.Rows()
	}
	n := int64(0)
	for _, passing := range g.Passing {
		n += passing
	}
	return n
}

// digestWith returns the digest of the edition, which covers that of its selection; nil: there is no filter.
func (g *edition) digestWith(selected *dataset.Digest, o dataset.Options) (dataset.Digest, error) {
	manifest, err := g.data.Manifest.Digest()
	if err != nil {
		return dataset.Digest{}, err
	}
	return dataset.SelectedJobDigest(manifest, selected, g.resolved.Canonical(), o)
}

// restoreSelection gives an edition the selection that an earlier leader stored.
func (g *edition) restoreSelection(j *job, s *record.Selection, pieces [][]byte) error {
	if s == nil {
		return nil
	}
	if len(pieces) < s.Pieces {
		return fmt.Errorf("%d pieces of the selection of %d are stored", len(pieces), s.Pieces)
	}
	passing, err := record.UnpackPassing(pieces[:s.Pieces], g.data.Manifest)
	if err != nil {
		return err
	}
	g.Selection, g.Passing = s, passing
	g.Digest, err = g.digestWith(&s.Digest, j.Plan)
	return err
}

// selectionStatus describes how far the selection of an edition is.
func (j *job) selectionStatus(g *edition) *apiv1.SelectionStatus {
	if !g.filters() {
		return nil
	}
	n := uint32(len(g.data.Manifest.Partitions))
	s := &apiv1.SelectionStatus{Rows: g.data.Manifest.Rows(), Partitions: n}
	switch {
	case g.Selection != nil:
		s.Sha256, s.Tested, s.Passing, s.PartitionsDone = g.Selection.Digest[:], s.Rows, g.rows(), n
	case j.selecting != nil:
		s.Tested, s.Passing, s.PartitionsDone = j.selecting.counts()
	}
	return s
}

// selectRows makes the selection of an edition, unless its pipeline has no filter. A selection that an earlier leader
// made is made again only if no member has its file any more.
func (c *conductor) selectRows(g *edition) error {
	if !g.filters() {
		return nil
	}
	if c.s.jobFiles == nil {
		return errNoSelections
	}
	if !g.needsSelection() {
		return c.keepSelection(g)
	}
	made, err := (&rowSelector{c: c, g: g, shown: true}).run()
	if err != nil {
		return fmt.Errorf("make the selection of the filter: %w", err)
	}
	digest, err := g.digestWith(&made.Digest, c.job.Plan)
	if err != nil {
		return err
	}
	pieces, err := record.PackPassing(made.Passing)
	if err != nil {
		return err
	}
	ops := make([]store.Op, len(pieces))
	for i, p := range pieces {
		ops[i] = store.Put(record.PassingKey(c.job.ID, g.Number, i), p)
	}
	// The state that names the pieces is written after them.
	if err := c.commitAll(c.ctx, ops); err != nil {
		return fmt.Errorf("store the numbers of passing rows: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.job.Phase().Ended() {
		return nil
	}
	s := record.Selection{Digest: made.Digest, Bytes: made.Bytes, Pieces: len(pieces)}
	g.Selection, g.Passing, g.Digest, c.job.selecting = &s, made.Passing, digest, nil
	c.job.Selected(g.Number, digest, s)
	c.logger.Info("rows were selected", "job", c.job.ID, "digest", digest.String()[:12], "selection",
		made.Digest.String()[:12], "rows", g.data.Manifest.Rows(), "passing", g.rows())
	c.s.jobFiles.wake()
	if g.rows() == 0 {
		return fmt.Errorf("%w: no row of %d passes the pipeline's filter", record.ErrSpec, g.data.Manifest.Rows())
	}
	return checkPlan(c.job, g, c.o.MaxSplits)
}

// keepSelections makes the selections of a job that has begun again if no member has their files any more, so that
// nodes which join later can be prepared.
func (c *conductor) keepSelections() {
	if wait.Sleep(c.ctx, 2*shareBeats*c.o.Beat) != nil { // other members say meanwhile which files they have
		return
	}
	c.mu.Lock()
	var list []*edition
	for _, g := range c.job.editions {
		if g.Selection != nil && c.job.Phase().Begun() {
			list = append(list, g)
		}
	}
	c.mu.Unlock()
	for _, g := range list {
		if err := c.keepSelection(g); err != nil && c.ctx.Err() == nil {
			c.logger.Error("keep the selection of a job", "job", c.job.ID, "selection", g.Selection.Digest.String(), "error",
				err)
		}
	}
}

// keepSelection makes sure that this member has the file of an edition's selection. Another selection than the stored
// one is an error: the partitions are not those of before.
func (c *conductor) keepSelection(g *edition) error {
	file := g.Selection.File()
	err := c.s.jobFiles.obtain(c.ctx, file)
	if !errors.Is(err, jobfiles.ErrMissing) {
		return err
	}
	c.logger.Info("no member has the selection of a job: it is made again", "job", c.job.ID, "selection",
		file.Digest.String())
	made, err := (&rowSelector{c: c, g: g}).run()
	if err == nil && made.Digest != g.Selection.Digest {
		err = fmt.Errorf("other rows pass the filter now: the selection was %s and is %s", g.Selection.Digest, made.Digest)
	}
	if err != nil {
		return fmt.Errorf("make the selection of the filter again: %w", err)
	}
	return nil
}

// selectionFolder returns the folder in which the parts of an edition's selection are kept until it is made.
func (s *Server) selectionFolder(j *job, g *edition) string {
	return filepath.Join(s.vocabularyFolder(), "selections", fmt.Sprintf("%s-%d", j.Submission.ID, g.Number))
}

// join writes the file of a selection from its parts, and puts it into this member's store.
func (r *rowSelector) join() (*selection.Joined, error) {
	path := filepath.Join(r.folder, "joined")
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	joined, err := selection.Join(w, r.g.data.Manifest, r.filter, func(i int) (*selection.Selection, error) {
		return selection.Load(r.partPath(i))
	})
	if err == nil {
		err = w.Flush()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return joined, r.c.retryWhileBusy(func() error { return r.store(path, joined) }) // files of ended jobs make room
}

// store puts the joined file into the store of files by digest, from which members and nodes fetch it. The file counts
// towards the share of the job's owner.
func (r *rowSelector) store(path string, joined *selection.Joined) (err error) {
	file := (&record.Selection{Digest: joined.Digest, Bytes: joined.Bytes}).File()
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	piece := make([]byte, jobfiles.MaxPiece)
	for have := int64(0); have < file.Bytes; {
		n, err := f.ReadAt(piece, have)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		before := have
		if have, err = r.c.s.jobFiles.files.Append(r.c.job.Owner, file, have, piece[:n]); err != nil {
			return connect.NewError(vocabularyCode(err), err)
		}
		if have <= before {
			return fmt.Errorf("selection %v: the store took no bytes behind byte %d", file.Digest, before)
		}
	}
	return nil
}

// removeParts removes the parts of an edition's selection, which a job that ends early leaves behind.
func (c *conductor) removeParts(g *edition) {
	if !g.filters() || c.s.jobFiles == nil {
		return
	}
	folder := c.s.selectionFolder(c.job, g)
	if err := os.RemoveAll(folder); err != nil {
		c.logger.Warn("remove the parts of a selection", "file", folder, "error", err)
	}
}

// removeSelectionParts removes the parts of selections of jobs that have ended while no member led.
func (l *leader) removeSelectionParts() {
	folder := filepath.Join(l.s.vocabularyFolder(), "selections")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return // no selection was made here
	}
	wanted := map[string]bool{}
	for _, j := range l.mu.jobs {
		for _, g := range j.editions {
			wanted[filepath.Base(l.s.selectionFolder(j, g))] = !j.Phase().Ended()
		}
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || wanted[e.Name()] || time.Since(info.ModTime()) < unusedVocabulary {
			continue
		}
		if err := os.RemoveAll(filepath.Join(folder, e.Name())); err != nil {
			l.logger.Warn("remove the parts of a selection", "file", e.Name(), "error", err)
		}
	}
}
