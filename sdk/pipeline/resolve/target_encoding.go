package resolve

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/targetencoding"
)

// featureEncoding is what a target encoding does to the keys of a dense feature, behind the drive.
type featureEncoding struct {
	encoding  *targetencoding.Encoding // nil in a pass that makes statistics, and in a trial
	digest    [sha256.Size]byte        // The SHA-256 of the table.
	folding   targetencoding.Folding
	smoothing float64
	mode      string
	from      string // name of the statistics
}

// applyTargetEncoding ends a chain with a target encoding.
func applyTargetEncoding(c *chain) {
	if !c.RequireIntegers() {
		return
	}
	if c.column.List {
		c.Refuse(problem.ErrColumnType, "%s takes one key a row, and this is a list", c.Name)
		return
	}
	e := &featureEncoding{mode: c.Word("mode"), from: c.StatisticsName(), smoothing: c.Number("p_smooth").Real(),
		folding: targetencoding.Folding{Folds: int(c.Number("folds").Int), Seed: c.Number("seed").Int}}
	c.encoding = e
	if c.r.statistics == nil { // a trial
		return
	}
	if c.r.target == nil {
		c.Refuse(problem.ErrMissing, "%s takes the label, and the pipeline has none, or one with an error", c.Name)
		return
	}
	standIn := &pipeline.ValueStatistics{}
	s := c.findStatistics(c.targetName(e.folding), &e.folding, standIn)
	switch {
	case s == nil || s == standIn:
		return
	case s.Targets == nil || len(s.Targets.Totals) != e.folding.Folds:
		c.Refuse(problem.ErrStatistics, "%q has no labels of %s in %d folds: make the summary again",
			problem.Shorten(c.StatisticsName()),
			s.Name, e.folding.Folds)
		return
	}
	var err error
	if e.digest, err = s.Targets.Digest(); err == nil {
		e.encoding, err = targetencoding.NewEncoding(s.Targets, e.folding.Seed, e.smoothing, e.mode == "train")
	}
	if err != nil {
		c.Refuse(problem.ErrStatistics, "%v", err)
	}
}

// targetName returns the name under which statistics hold the labels of the value that the chain has made so far.
func (c *chain) targetName(f targetencoding.Folding) string {
	label := canonical{}
	label.feature(c.r.target)
	label.stepsAndTables()
	sum := sha256.Sum256(label.b)
	return fmt.Sprintf("%s with label %s (%s) in %d folds of seed %d", c.valueName(), problem.Shorten(c.r.target.Name),
		hex.EncodeToString(sum[:6]), f.Folds, f.Seed)
}

// encoding writes a target encoding.
func (c *canonical) encoding(e *featureEncoding) {
	c.str(fmt.Sprintf(`{"target_encoding":{"table":"%x","p_smooth":"%016x","mode":"%s"`, e.digest,
		math.Float64bits(e.smoothing), e.mode))
	if e.mode == "train" {
		c.str(`,"seed":`).int(e.folding.Seed)
	}
	c.str(`}}`)
}

// CheckPartitions refuses partitions whose rows the statistics of a target encoding for training did not count: by
// their names they would have other folds. The error is of type [Errors] and wraps ErrStatistics.
func (r *Resolved) CheckPartitions(m *dataset.Manifest) error {
	var p problem.List
	for i := range r.Dense {
		f := &r.Dense[i]
		if f.encoding == nil || f.encoding.encoding == nil {
			continue
		}
		unknown, first := 0, ""
		for j := range m.Partitions {
			name := m.Partitions[j].Name
			partition, err := targetencoding.NewPartition(name)
			if err != nil {
				return err
			}
			if f.encoding.encoding.Fits(partition) {
				continue
			}
			if unknown == 0 {
				first = name
			}
			unknown++
		}
		if unknown > 0 {
			p.Add(f.Place, problem.ErrStatistics, "%q was made of other partitions than %s (%d of %d), and %s draws folds "+
				"by their names: make the summary again over this data; or, if it is the same data under other names, "+
				"say where it begins (--root FOLDER, root= in Python); or, if it is not trained on, take mode: serve",
				problem.Shorten(f.encoding.from), problem.Shorten(first), unknown, len(m.Partitions),
				pipeline.TargetEncodingOperator)
		}
	}
	return p.Err()
}

// TakeEncodings moves the dense features with target encodings to the end of the keys, where the drive makes their
// keys, and returns what the host makes of them; nil if there are none.
func (r *Resolved) TakeEncodings() (columns []targetencoding.Column) {
	var dense []Feature
	keys := r.Keys[:len(r.Keys):len(r.Keys)]
	names := make(map[string]bool, len(keys))
	for i := range keys {
		names[keys[i].Name] = true
	}
	at := 0
	for _, f := range r.Dense {
		if f.encoding == nil {
			dense = append(dense, f)
			at += f.Width()
			continue
		}
		columns = append(columns, targetencoding.Column{Dense: at, Encoding: f.encoding.encoding})
		at++
		for f.Name = fmt.Sprint(pipeline.TargetEncodingOperator, " ", len(columns)); names[f.Name]; {
			f.Name += "'"
		}
		names[f.Name] = true
		f.encoding, f.DropScores = nil, true
		keys = append(keys, f)
		if !f.IDs.FitsInt32() {
			r.IDs = program.IDs64
		}
	}
	if columns != nil {
		r.Dense, r.Keys = dense, keys
	}
	return columns
}
