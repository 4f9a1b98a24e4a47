package timing

import "cmp"

// Workload is the cost of one row, on average.
type Workload struct {
	Dense     int     // dense features, float32 or int32 in the file
	Sparse    int     // sparse features, int64 or int32 ids
	Mean      float64 // ids a sparse feature
	Fixed     bool    // scalars: no levels in, no lengths out
	Generated int     // features made by Bucketize, each hashed as a sparse one
	Borders   int     // bucket borders
	IDBytes   int     // bytes of an id in the file: 8, or 4

	// The fields of a pipeline that make tensors smaller. 0 is the largest form.
	DenseBytes    int // bytes of a dense value in a mini-batch: 4 (0 too), or 2 of bfloat16
	TensorIDBytes int // bytes of an id in a mini-batch: 8 (0 too), or 4
}

// InBytes is the size of a row in a file that is PLAIN and uncompressed, its label included.
func (w Workload) InBytes() float64 {
	b := 4*float64(w.Dense) + w.ids()*float64(w.IDBytes) + 4
	if !w.Fixed {
		b += 4 * float64(w.Sparse)
	}
	return b
}

// labelBytes and lengthBytes are the bytes of a label and of a list's length.
const (
	labelBytes  = 4
	lengthBytes = 4
)

// outBytes is a row's share of what the drive writes and hands to its host: dense, values, lengths, label. The host
// deduplicates, so deduplicated keys have as many bytes here as other keys.
func (w Workload) outBytes() float64 { return w.denseOutBytes() + w.sparseOutBytes() }

// denseOutBytes is the dense values and the label of a row.
func (w Workload) denseOutBytes() float64 {
	return float64(cmp.Or(w.DenseBytes, 4))*float64(w.Dense) + labelBytes
}

// sparseOutBytes is the values and lengths of a row.
func (w Workload) sparseOutBytes() float64 {
	b := float64(cmp.Or(w.TensorIDBytes, 8)) * w.Hashed()
	if !w.Fixed {
		b += lengthBytes * float64(w.Sparse+w.Generated)
	}
	return b
}

// ids is the number of sparse ids a row holds.
func (w Workload) ids() float64 { return float64(w.Sparse) * w.Mean }

// Decoded is the number of values that the decoder yields a row; lengths count.
func (w Workload) Decoded() float64 {
	n := float64(w.Dense) + w.ids()
	if !w.Fixed {
		n += float64(w.Sparse)
	}
	return n
}

// Hashed is the number of ids hashed a row.
func (w Workload) Hashed() float64 { return w.ids() + float64(w.Generated) }

// Device is a drive. Bandwidths are in bytes a second.
type Device struct {
	Name     string
	ClockHz  float64
	P2P      float64 // flash to device memory
	DDR      float64 // device memory, sustained
	Output   float64 // device memory to host
	Lanes    float64 // values a cycle of one decoder
	Decoders int
	Hashers  int
	Loggers  int
	Buckets  int // Bucketize elements
	Watts    float64
	Bytes    float64 // flash
}

// Constants with their sources.
const (
	PreStoClockHz       = 223e6        // PreSto, Table II: all units at 223 MHz
	PreStoWatts         = 25.0         // PreSto, IV: the U.2 power envelope
	AssumedP2P          = 3.0e9        // assumption: PCIe Gen3 x4 less overhead
	SmartSSDMeasuredP2P = 2.231e9      // mean of 300 reads of 2 GB: Defibrilator/smartssd-benchmarks, report.md
	FittedOutput        = 2.0e9        // fitted to the paper's 40.8 % for Extract: with it the model gives 40.4 % on RM5
	AssumedDDR          = 0.8 * 19.2e9 // DDR4-2400 x64 at 80 %
	SmartSSDBytes       = 3.84e12      // Samsung SmartSSD
	TableIIElements     = 8            // inferred: the common factor of Table II's DSP, URAM and BRAM counts
)

// SmartSSD is the drive of PreSto as the model sees it: eight elements of one value a cycle of each unit.
func SmartSSD() Device {
	return Device{
		Name: "SmartSSD (model)", ClockHz: PreStoClockHz, P2P: AssumedP2P, DDR: AssumedDDR, Output: FittedOutput, Lanes: 1,
		Decoders: TableIIElements, Hashers: TableIIElements, Loggers: TableIIElements, Buckets: TableIIElements,
		Watts: PreStoWatts, Bytes: SmartSSDBytes,
	}
}

// Times are the seconds that each stage takes for one mini-batch.
type Times struct {
	Rows                                       int
	Move, Decode, Bucketize, Hash, Log, Output float64
	DDR                                        float64 // of memory traffic if every stage goes through device memory
}

// Batch returns the stage times of a mini-batch of rows rows.
func (d Device) Batch(w Workload, rows int) Times {
	n := float64(rows)
	cycles := func(values float64, elements int) float64 {
		if elements <= 0 {
			return 0
		}
		return values / float64(elements) / d.ClockHz
	}
	decoded := 4*float64(w.Dense) + w.ids()*float64(w.IDBytes)
	if !w.Fixed {
		decoded += 4 * float64(w.Sparse)
	}
	return Times{
		Rows:   rows,
		Move:   n * w.InBytes() / d.P2P,
		Decode: cycles(n*w.Decoded()/d.Lanes, d.Decoders),
		// values, and loading the borders
		Bucketize: cycles(n*float64(w.Generated)+float64(w.Generated*w.Borders), d.Buckets),
		Hash:      cycles(n*w.Hashed(), d.Hashers),
		Log:       cycles(n*float64(w.Dense), d.Loggers),
		Output:    n * w.outBytes() / d.Output,
		DDR:       n * 2 * (w.InBytes() + decoded + w.outBytes()) / d.DDR,
	}
}

// Serial is the latency of one mini-batch whose stages run one after the other.
func (t Times) Serial() float64 {
	return t.Move + t.Decode + t.Bucketize + t.Hash + t.Log + t.Output
}

// ExtractShare is the part of the serial time that PreSto calls Extract: moving and decoding.
func (t Times) ExtractShare() float64 { return (t.Move + t.Decode) / t.Serial() }

// Bottleneck names the stage that bounds the throughput when all overlap, units streaming into each other on chip, and
// its time. The output counts only where withOutput says so: a drive on the trainer's own machine writes at PCIe speed.
func (t Times) Bottleneck(withOutput bool) (string, float64) {
	name, most := "move", t.Move
	for _, s := range []struct {
		name string
		t    float64
	}{{"decode", t.Decode}, {"bucketize", t.Bucketize}, {"sigrid_hash", t.Hash}, {"log", t.Log}, {"output", t.Output}} {
		if s.t > most && (s.name != "output" || withOutput) {
			name, most = s.name, s.t
		}
	}
	return name, most
}

// RowsPerSecond is the throughput with all stages overlapped.
func (t Times) RowsPerSecond(withOutput bool) float64 {
	_, most := t.Bottleneck(withOutput)
	return float64(t.Rows) / most
}
