package apiv1_test

import (
	"encoding/hex"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestPlansTravelWhole writes options that differ from their defaults in every field, and reads them.
func TestPlansTravelWhole(t *testing.T) {
	want := dataset.Options{Batch: 100, Tail: dataset.DropTail, Shuffle: dataset.ShuffleRows, Seed: 1 << 63,
		SplitBatches: 7, Window: 3}
	for _, boundary := range []dataset.Boundary{dataset.BoundaryPartition, dataset.BoundaryNone} {
		want.Boundary = boundary
		wire, err := proto.Marshal(apiv1.WritePlan(want))
		require.NoError(t, err)
		var p apiv1.PlanOptions
		require.NoError(t, proto.Unmarshal(wire, &p))
		got, err := apiv1.ReadPlan(&p)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, p := range []*apiv1.PlanOptions{nil, {}, {Boundary: "partition"}} {
		got, err := apiv1.ReadPlan(p)
		require.NoError(t, err)
		assert.Equal(t, dataset.Options{}, got)
	}
}

// TestFormOfPlans holds the bytes of a plan's options. Those of the boundary partition are the bytes of builds that
// know no other boundary.
func TestFormOfPlans(t *testing.T) {
	o := dataset.Options{Batch: 10, SplitBatches: 16, Window: 4, Seed: 5}
	const before = "080a12046b6565701a0673706c697473200528103004"
	for _, c := range []struct {
		boundary dataset.Boundary
		more     string
	}{{dataset.BoundaryPartition, ""}, {dataset.BoundaryNone, "3a046e6f6e65"}} {
		o.Boundary = c.boundary
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(apiv1.WritePlan(o))
		require.NoError(t, err)
		assert.Equal(t, before+c.more, hex.EncodeToString(b))
	}
}

// TestPlansAreBounded reads each number at its limits and beyond, and words that no option has.
func TestPlansAreBounded(t *testing.T) {
	for what, plan := range map[string]func(n int64) *apiv1.PlanOptions{
		"batch":         func(n int64) *apiv1.PlanOptions { return &apiv1.PlanOptions{Batch: n} },
		"split_batches": func(n int64) *apiv1.PlanOptions { return &apiv1.PlanOptions{SplitBatches: n} },
		"window":        func(n int64) *apiv1.PlanOptions { return &apiv1.PlanOptions{Window: n} },
	} {
		most := int64(dataset.MaxSplitBatches)
		if what == "batch" {
			most = dataset.MaxBatch
		}
		for _, n := range []int64{0, most} {
			_, err := apiv1.ReadPlan(plan(n))
			assert.NoError(t, err, "%s %d", what, n)
		}
		for _, n := range []int64{-1, most + 1, math.MinInt64, math.MaxInt64} {
			_, err := apiv1.ReadPlan(plan(n))
			assert.ErrorIs(t, err, dataset.ErrOptions, "%s %d", what, n)
			assert.ErrorContains(t, err, what)
		}
	}
	for _, p := range []*apiv1.PlanOptions{{Boundary: "x"}, {Tail: "x"}, {Shuffle: "x"}} {
		_, err := apiv1.ReadPlan(p)
		assert.ErrorIs(t, err, dataset.ErrOptions, "%v", p)
	}
}
