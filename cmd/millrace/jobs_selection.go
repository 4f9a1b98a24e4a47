package main

import (
	"encoding/hex"
	"fmt"
	"io"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/quantity"
)

// selectedView is the selection of a job's filter as it is printed.
type selectedView struct {
	Digest         string `json:"sha256"` // empty: it is being made
	Rows           int64  `json:"rows"`
	Tested         int64  `json:"tested_rows"`
	Passing        int64  `json:"passing_rows"` // so far
	Partitions     uint32 `json:"partitions"`
	PartitionsDone uint32 `json:"partitions_done"`
}

// viewSelection returns nil for a pipeline without a filter.
func viewSelection(s *apiv1.SelectionStatus) *selectedView {
	if s == nil {
		return nil
	}
	return &selectedView{Digest: hex.EncodeToString(s.Sha256), Rows: s.Rows, Tested: s.Tested, Passing: s.Passing,
		Partitions: s.Partitions, PartitionsDone: s.PartitionsDone}
}

func printSelection(w io.Writer, v *selectedView) {
	switch {
	case v == nil:
	case v.Digest == "":
		fmt.Fprintf(w, "selection\tbeing made: %d of %s tested, %d of %s done\n", v.Tested,
			quantity.Of(v.Rows, "row"), v.PartitionsDone, quantity.Of(int(v.Partitions), "partition"))
	default:
		fmt.Fprintf(w, "selection\t%s: passes %d of %s\n", v.Digest, v.Passing, quantity.Of(v.Rows, "row"))
	}
}
