package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr/local"
)

// selectionFlags say where selections are kept.
type selectionFlags struct{ dir string }

func (s *selectionFlags) addFlag(f *pflag.FlagSet) {
	f.StringVar(&s.dir, "selections", "", "folder that keeps which rows pass the pipeline's filter, so that another "+
		"run over the same data with the same filter need not find them again")
}

// appliedSelection says which rows passed a pipeline's filter.
type appliedSelection struct {
	Digest         string  `json:"sha256"`
	Rows           int64   `json:"rows"`
	PassingRows    int64   `json:"passing_rows"`
	Kept           bool    `json:"reused"` // an earlier run found them
	ElapsedSeconds float64 `json:"elapsed_seconds"`
}

// checkUsed refuses the flag for a pipeline without a filter.
func (s *selectionFlags) checkUsed(cmd *cobra.Command, spec *pipeline.Spec) error {
	mode := withoutFilter
	if spec.Filter != nil {
		mode = withFilter
	}
	return refuseUnused(cmd, mode, selectionUses)
}

// bind gives the pipeline the selection of its filter. It returns nil for a pipeline without a filter.
func (s *selectionFlags) bind(
	ctx context.Context, c *console, storage api.Storage, spec *pipeline.Spec, queue int64,
) (*pipeline.Spec, *appliedSelection, error) {
	begin := time.Now()
	var shown *progress
	selections := &local.Selections{Dir: s.dir, QueueBytes: queue}
	selections.Started = func(rows int64) { shown = c.newProgress("filter", "rows", rows) }
	selections.Progress = func(rows int64) { shown.add(rows) }
	bound, report, err := selections.Bind(ctx, storage, spec)
	if shown != nil {
		shown.finish()
	}
	if err != nil || report == nil {
		return bound, nil, err
	}
	return bound, &appliedSelection{Digest: report.Digest.String(), Rows: report.Rows, PassingRows: report.Passing,
		Kept: report.Kept, ElapsedSeconds: time.Since(begin).Seconds()}, nil
}
