package local

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
)

// regression is a small real model: logistic regression over dense features and hashed ids, trained by stochastic
// gradient descent. Every operation is rounded by itself, so that equal mini-batches in equal order give equal bits.
type regression struct {
	dense  []float64
	ids    map[int64]float64
	bias   float64
	losses []uint64 // bits of the mean loss of each mini-batch
}

const learningRate = 0.01

// step trains on a mini-batch and keeps its loss.
func (r *regression) step(mb *tensor.MiniBatch) {
	width := len(mb.Dense) / mb.Rows
	if r.dense == nil {
		r.dense, r.ids = make([]float64, width), map[int64]float64{}
	}
	loss := 0.0
	for row := range mb.Rows {
		features := mb.Dense[row*width : (row+1)*width]
		var ids []int64
		start := 0
		for key := range len(mb.Lengths) / mb.Rows { // ids lie key after key, then row after row
			for other := range mb.Rows {
				n := int(mb.Lengths[key*mb.Rows+other])
				if other == row {
					for _, id := range mb.Values64[start : start+n] {
						ids = append(ids, int64(key)<<32|id)
					}
				}
				start += n
			}
		}
		logit := r.bias
		for i, v := range features {
			logit += float64(r.dense[i] * float64(v))
		}
		for _, id := range ids {
			logit += r.ids[id]
		}
		prediction := 1 / (1 + math.Exp(-logit))
		label := float64(mb.Label[row])
		loss -= math.Log(math.Max(1e-12, float64(label*prediction)+float64((1-label)*(1-prediction))))
		slope := float64(learningRate * (prediction - label))
		r.bias -= slope
		for i, v := range features {
			r.dense[i] -= float64(slope * float64(v))
		}
		for _, id := range ids {
			r.ids[id] -= slope
		}
	}
	r.losses = append(r.losses, math.Float64bits(loss/float64(mb.Rows)))
}

// TestLossCurvesAreEqualAtEveryShare trains the model over three epochs with every share of the splits on drives and
// the rest on the trainer's own CPUs. In the order `deterministic` the loss curves are equal to the last bit; in the
// order `fastest` the same mini-batches come, in a sequence that depends on which side is faster.
func TestLossCurvesAreEqualAtEveryShare(t *testing.T) {
	d := newDataSet(t, 170, 1000, 900, 0, 700, 450)
	spec := "lists"
	files := d.files(t)
	train := func(order dataset.Order, ratio float64) (regression, work) {
		own, err := Open(t.Context(), Config{Files: source.ParseLocations(files...),
			DriveOptions: host.DriveOptions{Engine: host.EngineCPU}})
		require.NoError(t, err)
		defer func() { require.NoError(t, own.Close()) }()
		// Two drives, and a third drive that holds the same partitions as the first.
		drives, err := Open(t.Context(), Config{Drives: d.memory(t, [][]int{{0, 3}, {1, 2}, {0}}, "")})
		require.NoError(t, err)
		defer func() { require.NoError(t, drives.Close()) }()
		o := trainmgr.Options{Pipeline: pipelineOf(t, spec), Order: order, SplitBatches: 2, AllDrives: true, Epochs: 3,
			Seed: 7}
		if ratio >= 0 {
			o.Offload = trainmgr.Offload{Local: own, Ratio: &ratio}
		}
		var model regression
		w := runOn(t, drives, o, model.step)
		return model, w
	}
	plain, want := train(dataset.Deterministic, -1) // without sharing: as before there was any
	assert.Nil(t, want.report.Offload)
	require.Greater(t, len(plain.losses), 90)
	first, last := math.Float64frombits(plain.losses[0]), math.Float64frombits(plain.losses[len(plain.losses)-1])
	require.NotEqual(t, first, last, "the model trains")
	for _, ratio := range []float64{0, 0.2, 0.5, 0.75, 1} {
		t.Run(fmt.Sprint(ratio), func(t *testing.T) {
			model, got := train(dataset.Deterministic, ratio)
			assert.Equal(t, plain.losses, model.losses)
			assert.Equal(t, plain.dense, model.dense)
			assert.Equal(t, want.order, got.order)
			assert.Equal(t, want.sums, got.sums)
			shared := got.report.Offload
			splits := float64(shared.LocalSplits + shared.RemoteSplits)
			assert.InDelta(t, ratio*splits, float64(shared.RemoteSplits), 3, "one split an epoch")

			_, got = train(dataset.Fastest, ratio)
			assert.Equal(t, want.sums, got.sums)
		})
	}
}
