package timing

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
)

// figure is a figure of an image.
func figure(v uint32) image.Figure { return image.Figure{Value: v, Source: image.SourceRequested} }

// unit is the figures of one unit: elements, lanes, initiation interval, latency.
func unit(u program.Unit, elements, lanes, interval, latency uint32) image.UnitParameters {
	return image.UnitParameters{Unit: uint16(u), Elements: figure(elements), Lanes: figure(lanes),
		Interval: figure(interval), Latency: figure(latency)}
}

// exampleImage has 100 MHz, double buffers and chained units.
func exampleImage() *image.Parameters {
	return &image.Parameters{Clock: figure(100_000), Buffers: figure(2), Chained: figure(1), Units: []image.UnitParameters{
		unit(program.UnitParquet, 2, 4, 1, 10), unit(sigridhash.Unit, 1, 1, 2, 40),
		unit(log.Unit, 5, 1, 1, 29), unit(clamp.Unit, 1, 1, 100, 1),
	}}
}

// TestExampleByHand compares the model with figures that were computed by hand, for 1000 rows of 100 dense features and
// 10 lists of 4 ids.
func TestExampleByHand(t *testing.T) {
	// A row in the file: 100 x 4 + 40 x 8 + 10 x 4 (lengths) + 4 (label) = 764 bytes, of which 760 are decoded.
	// A row of tensors: 100 x 4 + 40 x 8 + 10 x 4 + 4 = 764 bytes. Values decoded: 100 + 40 + 10.
	w := Workload{Dense: 100, Sparse: 10, Mean: 4, IDBytes: 8}
	board := Device{P2P: 2e9, DDR: 16e9, Output: 1e9, PCIe: 0.5e9, Network: 0.25e9}
	p := exampleImage()
	us := func(want, got float64) { t.Helper(); assert.InDelta(t, want, got*1e6, 1e-6) }

	got := OfImage(board, p).Batch(w, 1000)
	us(382, got.Move)     // 764,000 bytes / 2 GB/s
	us(187.6, got.Decode) // 150,000 values / (2 x 4) + 10 cycles at 10 ns
	us(800.4, got.Hash)   // 40,000 x 2 + 40 cycles
	us(200.29, got.Log)   // 100,000 / 5 + 29 cycles
	us(0, got.Bucketize)  // no values, no latency
	us(1528, got.Output)  // 764,000 bytes / 0.5 GB/s: the link is slower than the drive's output
	us(3056, got.Network) // 764,000 bytes / 0.25 GB/s
	us(191, got.DDR)      // 2 x (764,000 + 764,000) bytes / 16 GB/s
	us(3098.29, got.Serial())

	stage, most := got.Bottleneck(false)
	assert.Equal(t, StageHash, stage)
	us(800.4, most)
	us(800.4, got.Period(false))
	assert.InEpsilon(t, 1000/800.4e-6, got.RowsPerSecond(false), 1e-9)
	stage, _ = got.Bottleneck(true)
	assert.Equal(t, StageNetwork, stage)
	us(3056, got.Period(true))

	p.Buffers = figure(1)
	got = OfImage(board, p).Batch(w, 1000)
	us(1570.29, got.Period(false)) // 382 + 187.6 + 800.4 + 200.29
	us(3098.29, got.Period(true))  // and the output; the network is faster than all of them
	stage, _ = got.Bottleneck(false)
	assert.Equal(t, StageHash, stage, "the longest stage")

	p.Chained = figure(0)
	us(286, OfImage(board, p).Batch(w, 1000).DDR) // and 2 x 760,000 bytes
}

// TestHalfTheLanesAtHalfTheClock: where compute binds, that is a quarter of P.
func TestHalfTheLanesAtHalfTheClock(t *testing.T) {
	p := exampleImage()
	p.Units[0] = unit(program.UnitParquet, 1, 8, 8, 10)
	board := SmartSSD()
	p.Units[1].Elements = figure(16)
	w := Workload{Dense: 100, Sparse: 10, Mean: 4, IDBytes: 8}
	whole := OfImage(board, p).Batch(w, batch)
	stage, _ := whole.Bottleneck(false)
	require.Equal(t, StageDecode, stage)
	p.Clock, p.Units[0].Lanes = figure(50_000), figure(4)
	quarter := OfImage(board, p).Batch(w, batch)
	assert.InEpsilon(t, whole.RowsPerSecond(false)/4, quarter.RowsPerSecond(false), 1e-4)
}

// TestAUnitThatIsLacking: the throughput is 0, and the error names the unit.
func TestAUnitThatIsLacking(t *testing.T) {
	w := Workload{Dense: 100, Sparse: 10, Mean: 4, IDBytes: 8}
	for name, u := range map[string]program.Unit{"parquet": program.UnitParquet, "sigrid_hash": sigridhash.Unit,
		"log": log.Unit} {
		p := exampleImage()
		require.NoError(t, OfImage(SmartSSD(), p).CheckWork(w.Work(1)))
		for i := range p.Units {
			if p.Units[i].Unit == uint16(u) {
				p.Units[i].Unit = 999
			}
		}
		d := OfImage(SmartSSD(), p)
		require.ErrorContains(t, d.CheckWork(w.Work(1)), "unit "+name)
		assert.Zero(t, d.Batch(w, batch).RowsPerSecond(false), name)
	}
	w.Generated = 1
	d := OfImage(SmartSSD(), exampleImage())
	require.ErrorContains(t, d.CheckWork(w.Work(1)), "unit bucketize")
	_, most := d.Batch(w, batch).Bottleneck(false)
	assert.True(t, math.IsInf(most, 1))
}

// TestTheStockImagePrestoIsPrestosDesign: a drive with it has the times of the SmartSSD's model.
func TestTheStockImagePrestoIsPrestosDesign(t *testing.T) {
	b, err := stock.Named("presto")
	require.NoError(t, err)
	m, err := image.Parse(b)
	require.NoError(t, err)
	for _, w := range []Workload{rm1, rm5} {
		assert.Equal(t, SmartSSD().Batch(w, batch), OfImage(SmartSSD(), m.Spec.Parameters).Batch(w, batch))
	}
}
