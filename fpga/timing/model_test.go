package timing

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Table I of PreSto.
var (
	rm1 = Workload{Dense: 13, Sparse: 26, Mean: 1, Fixed: true, Generated: 13, Borders: 1024, IDBytes: 8}
	rm5 = Workload{Dense: 504, Sparse: 42, Mean: 20, Generated: 42, Borders: 4096, IDBytes: 8}
)

const batch = 8192

func TestBytesOfARow(t *testing.T) {
	assert.Equal(t, 264.0, rm1.InBytes())
	assert.Equal(t, 8908.0, rm5.InBytes())
}

// TestBytesOfAMiniBatchsRow compares a row's share of a mini-batch with the tensors' bytes of pipelines with and
// without the fields that make them smaller.
func TestBytesOfAMiniBatchsRow(t *testing.T) {
	const rm5Out = 4*504 + 8*(42*20+42) + 4*(42+42) + 4 // dense, values, lengths, label
	for name, c := range map[string]struct {
		w      Workload
		change func(*Workload)
		out    float64
	}{
		"rm1":               {rm1, func(*Workload) {}, 368},
		"rm1, float32 said": {rm1, func(w *Workload) { w.DenseBytes, w.TensorIDBytes = 4, 8 }, 368},
		"rm1, int32 ids":    {rm1, func(w *Workload) { w.TensorIDBytes = 4 }, 212},
		"rm1, and bfloat16": {rm1, func(w *Workload) { w.TensorIDBytes, w.DenseBytes = 4, 2 }, 186},
		"rm5":               {rm5, func(*Workload) {}, rm5Out},
		"rm5, bfloat16":     {rm5, func(w *Workload) { w.DenseBytes = 2 }, rm5Out - 1008},
	} {
		c.change(&c.w)
		assert.InDelta(t, c.out, c.w.bytesPutOut(), 1e-9, name)
		d := SmartSSD()
		assert.InEpsilon(t, batch*c.out/d.Output, d.Batch(c.w, batch).Output, 1e-9, name)
	}
}

// TestSmallerTensorsLeaveTheDriveSooner checks that bfloat16 and int32 ids raise P where the output bounds it, and that
// they do not change what is read.
func TestSmallerTensorsLeaveTheDriveSooner(t *testing.T) {
	small := rm5
	small.DenseBytes, small.TensorIDBytes = 2, 4
	d := SmartSSD()
	base, smaller := d.Batch(rm5, batch), d.Batch(small, batch)
	assert.Greater(t, smaller.RowsPerSecond(true), base.RowsPerSecond(true))
	assert.Equal(t, base.RowsPerSecond(false), smaller.RowsPerSecond(false))
	assert.Less(t, smaller.DDR, base.DDR)
	assert.Equal(t, base.Move, smaller.Move)
}

func TestStagesOfRM5(t *testing.T) {
	got := SmartSSD().Batch(rm5, batch)
	ms := func(want, got float64) { t.Helper(); assert.InDelta(t, want, got*1e3, 0.06) }
	ms(24.3, got.Move)
	ms(6.4, got.Decode)
	ms(0.3, got.Bucketize)
	ms(4.1, got.Hash)
	ms(2.3, got.Log)
	ms(38.6, got.Output)
	ms(75.9, got.Serial())
	ms(19.5, got.DDR)
	d := SmartSSD()
	d.Chained = false
	stage, most := d.Batch(rm5, batch).Bottleneck(false)
	assert.Equal(t, StageDDR, stage, "decoded values that go through device memory fill it")
	ms(29.0, most)
	assert.InDelta(t, 0.404, got.ExtractShare(), 0.001,
		"fitted by FittedOutput to PreSto's 40.8 %, so no evidence for the model")
}

// TestOtherFiguresFitExtractToo shows what the share of Extract cannot tell apart.
func TestOtherFiguresFitExtractToo(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Device)
		share  float64
	}{
		"output 1.5 GB/s": {func(d *Device) { d.Output = 1.5e9 }, 0.346},
		"output 2.5 GB/s": {func(d *Device) { d.Output = 2.5e9 }, 0.450},
		"interval 6": {func(d *Device) {
			for _, e := range []*Elements{&d.Decode, &d.Bucketize, &d.Hash, &d.Log} {
				e.Interval = 6
			}
		}, 0.443},
	} {
		d := SmartSSD()
		c.change(&d)
		assert.InDelta(t, c.share, d.Batch(rm5, batch).ExtractShare(), 0.001, name)
	}
}

func TestThroughputAndBottleneck(t *testing.T) {
	int32ids := rm5
	int32ids.IDBytes = 4
	for _, c := range []struct {
		name   string
		w      Workload
		output bool
		want   float64
		stage  string
	}{
		{"rm1", rm1, false, 11.4e6, "move"},
		{"rm1 with output", rm1, true, 5.4e6, "output"},
		{"rm5", rm5, false, 337e3, "move"},
		{"rm5 with output", rm5, true, 212e3, "output"},
		{"rm5 with int32 ids", int32ids, false, 513e3, "ddr"}, // 2 (5548 + 9412) bytes a row; P2P alone would give 541e3
	} {
		t.Run(c.name, func(t *testing.T) {
			times := SmartSSD().Batch(c.w, batch)
			stage, _ := times.Bottleneck(c.output)
			assert.Equal(t, c.stage, stage)
			assert.InEpsilon(t, c.want, times.RowsPerSecond(c.output), 0.01)
		})
	}
}

func TestBottleneckMovesToTheUnitThatIsShort(t *testing.T) {
	for stage, cut := range map[string]func(*Device){
		"decode":      func(d *Device) { d.Decode.Count = 1 },
		"sigrid_hash": func(d *Device) { d.Hash.Count = 1 },
		"log":         func(d *Device) { d.Log.Count, d.P2P, d.DDR = 1, 100e9, 100e9 },
		"bucketize": func(d *Device) {
			d.Bucketize.Count, d.ClockHz, d.P2P, d.DDR = 1, 1e9, 1e15, 1e15
			d.Decode.Count, d.Hash.Count, d.Log.Count = 1e6, 1e6, 1e6
		},
	} {
		d := SmartSSD()
		cut(&d)
		got, _ := d.Batch(rm5, batch).Bottleneck(false)
		assert.Equal(t, stage, got)
	}
}

func TestMoreOfAnythingIsNeverSlower(t *testing.T) {
	base := SmartSSD().Batch(rm5, batch).RowsPerSecond(true)
	for _, more := range []func(*Device){
		func(d *Device) { d.P2P *= 2 }, func(d *Device) { d.ClockHz *= 2 }, func(d *Device) { d.Output *= 2 },
		func(d *Device) { d.Decode.Count *= 2 }, func(d *Device) { d.Hash.Count *= 2 },
		func(d *Device) { d.Log.Count *= 2 }, func(d *Device) { d.Bucketize.Count *= 2 }, func(d *Device) { d.DDR *= 2 },
		func(d *Device) { d.PCIe *= 2 }, func(d *Device) { d.Decode.Lanes *= 2 },
	} {
		d := SmartSSD()
		more(&d)
		assert.GreaterOrEqual(t, d.Batch(rm5, batch).RowsPerSecond(true), base)
	}
}
