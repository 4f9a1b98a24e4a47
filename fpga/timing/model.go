package timing

import (
	"cmp"
	"math"
)

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
func (w Workload) InBytes() float64 { return w.decodedBytes() + labelBytes }

// labelBytes and lengthBytes are the bytes of a label and of a list's length.
const (
	labelBytes  = 4
	lengthBytes = 4
)

// bytesPutOut is a row's share of what the drive writes and hands to its host: dense, values, lengths, label. The host
// deduplicates, so deduplicated keys have as many bytes here as other keys.
func (w Workload) bytesPutOut() float64 { return w.denseOutBytes() + w.sparseOutBytes() }

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

// sparseValues is the number of sparse ids a row holds.
func (w Workload) sparseValues() float64 { return float64(w.Sparse) * w.Mean }

// Decoded is the number of values that the decoder yields a row; lengths count.
func (w Workload) Decoded() float64 {
	n := float64(w.Dense) + w.sparseValues()
	if !w.Fixed {
		n += float64(w.Sparse)
	}
	return n
}

// decodedBytes is the size of a row's decoded values, without the label.
func (w Workload) decodedBytes() float64 {
	b := 4*float64(w.Dense) + w.sparseValues()*float64(w.IDBytes)
	if !w.Fixed {
		b += 4 * float64(w.Sparse)
	}
	return b
}

// Hashed is the number of ids hashed a row.
func (w Workload) Hashed() float64 { return w.sparseValues() + float64(w.Generated) }

// Work is what a device does, for some rows of a workload ([Workload.Work]) or as a drive counted it. The counts are
// whole numbers where a drive counted.
type Work struct {
	FlashBytes   float64 // read from flash
	OutBytes     float64 // OutBytes are those of tensors.
	Decoded      float64 // values and lengths of lists that the decoder yields
	DecodedBytes float64 // their bytes
	Bucketized   float64 // values
	Borders      float64 // Borders are loaded before the first value.
	Hashed       float64 // ids
	Logged       float64 // values
}

// Work returns the work of a mini-batch of rows rows.
func (w Workload) Work(rows int) Work {
	n := float64(rows)
	return Work{FlashBytes: n * w.InBytes(), OutBytes: n * w.bytesPutOut(), Decoded: n * w.Decoded(),
		DecodedBytes: n * w.decodedBytes(), Bucketized: n * float64(w.Generated), Borders: float64(w.Generated * w.Borders),
		Hashed: n * w.Hashed(), Logged: n * float64(w.Dense)}
}

// Elements are the copies of one unit that a device has. A value enters a copy in each of Lanes lanes every Interval
// cycles, and its result leaves it Latency cycles later.
type Elements struct {
	Count    int
	Lanes    int // 0 is 1
	Interval int // 0 is 1
	Latency  int
}

// cyclesFor is the time in which the elements take values and yield the last result.
func (e Elements) cyclesFor(values float64) float64 {
	switch {
	case values == 0:
		return 0
	case e.Count <= 0:
		return math.Inf(1)
	}
	return values*float64(cmp.Or(e.Interval, 1))/float64(e.Count*cmp.Or(e.Lanes, 1)) + float64(e.Latency)
}

// Device is a drive. Bandwidths are in bytes a second.
type Device struct {
	Name    string
	ClockHz float64
	P2P     float64 // flash to device memory
	DDR     float64 // device memory, sustained; reads and writes share it
	Output  float64 // device memory to the host
	PCIe    float64 // the link to the host, which the output cannot exceed; 0: no bound
	Network float64 // the host to the trainer; 0: the trainer is on the drive's host

	Decode, Bucketize, Hash, Log Elements

	Chained bool // decoded values reach the operators on chip; else they are written to device memory and read again
	Overlap bool // double buffers: stages work on successive mini-batches at the same time

	Watts float64
	Bytes float64 // flash
}

// Constants with their sources.
const (
	PreStoClockHz       = 223e6                   // published: PreSto, Table II: all units at 223 MHz
	PreStoWatts         = 25.0                    // published: PreSto, IV: the U.2 power envelope, a limit
	AssumedP2P          = 3.0e9                   // assumed: PCIe Gen3 x4 less overhead
	SmartSSDMeasuredP2P = 2.231e9                 // published: mean of 300 reads of 2 GB: Defibrilator/smartssd-benchmarks
	FittedOutput        = 2.0e9                   // fitted to PreSto's 40.8 % for Extract: the model gives 40.4 % on RM5
	AssumedDDR          = 0.8 * 19.2e9            // assumed: 80 % of DDR4-2400 x64
	PCIeGen3x4          = 4 * 8e9 / 8 * 128 / 130 // published: PCI Express 3.0, 4 lanes of 8 GT/s, 128b/130b
	SmartSSDBytes       = 3.84e12                 // published: Samsung SmartSSD
	TableIIElements     = 8                       // inferred: common factor of PreSto's Table II's DSP, URAM and BRAM
	U280Units           = 2                       // published: PreSto, VI-C: twice the units of the SmartSSD's
	U280DDR             = 0.8 * 38e9              // assumed: 80 % of the 38 GB/s of DDR4 in the Alveo U280's data sheet
	U280Watts           = 225.0                   // published: PreSto, VI-C: TDP
)

// SmartSSD is the drive of PreSto as the model sees it: eight elements of one value a cycle of each unit. That decoded
// values stay on chip and that stages overlap is assumed; PreSto states no latencies of its units, so there are none.
func SmartSSD() Device {
	elements := Elements{Count: TableIIElements, Lanes: 1, Interval: 1}
	return Device{
		Name: "SmartSSD (model)", ClockHz: PreStoClockHz, P2P: AssumedP2P, DDR: AssumedDDR, Output: FittedOutput,
		PCIe: PCIeGen3x4, Decode: elements, Bucketize: elements, Hash: elements, Log: elements, Chained: true,
		Overlap: true, Watts: PreStoWatts, Bytes: SmartSSDBytes,
	}
}

// U280 is PreSto's other design as the model sees it: an Alveo U280 in the storage node, beside drives whose PCIe link
// feeds it. That link, its clock and its output are assumed to be the SmartSSD's: the paper states none of them. Its
// flash is that of one such drive.
func U280() Device {
	d := SmartSSD()
	elements := Elements{Count: U280Units * TableIIElements, Lanes: 1, Interval: 1}
	d.Name, d.DDR, d.Watts = "U280 (model)", U280DDR, U280Watts
	d.Decode, d.Bucketize, d.Hash, d.Log = elements, elements, elements, elements
	return d
}

// The stages of a mini-batch, as [Times.Bottleneck] names them.
const (
	StageMove      = "move"
	StageDecode    = "decode"
	StageBucketize = "bucketize"
	StageHash      = "sigrid_hash"
	StageLog       = "log"
	StageOutput    = "output"
	StageNetwork   = "network"
	StageDDR       = "ddr"
)

// Times are the seconds that each stage takes for one mini-batch. The time of a stage whose unit the device lacks is
// infinite, and the throughput is 0.
type Times struct {
	Rows                                       int
	Move, Decode, Bucketize, Hash, Log, Output float64
	Network                                    float64 // 0 where the trainer is on the drive's host
	DDR                                        float64 // DDR carries all the traffic to and from device memory.
	Overlap                                    bool
}

// Batch returns the stage times of a mini-batch of rows rows.
func (d Device) Batch(w Workload, rows int) Times {
	t := d.Times(w.Work(rows))
	t.Rows = rows
	return t
}

// Times returns the stage times of some work. It does not know of how many rows the work is.
func (d Device) Times(w Work) Times {
	out := d.Output
	if d.PCIe > 0 {
		out = min(out, d.PCIe)
	}
	// The moved bytes and the tensors are each written once and read once.
	traffic := 2 * (w.FlashBytes + w.OutBytes)
	if !d.Chained {
		traffic += 2 * w.DecodedBytes
	}
	t := Times{
		Move:      w.FlashBytes / d.P2P,
		Decode:    d.Decode.cyclesFor(w.Decoded) / d.ClockHz,
		Bucketize: d.Bucketize.cyclesFor(w.Bucketized+w.Borders) / d.ClockHz,
		Hash:      d.Hash.cyclesFor(w.Hashed) / d.ClockHz,
		Log:       d.Log.cyclesFor(w.Logged) / d.ClockHz,
		Output:    w.OutBytes / out,
		DDR:       traffic / d.DDR,
		Overlap:   d.Overlap,
	}
	if d.Network > 0 {
		t.Network = w.OutBytes / d.Network
	}
	return t
}

// Serial is the latency of one mini-batch whose stages run one after the other, until it is in the host's memory.
func (t Times) Serial() float64 {
	return t.Move + t.Decode + t.Bucketize + t.Hash + t.Log + t.Output
}

// ExtractShare is the part of the serial time that PreSto calls Extract: moving and decoding.
func (t Times) ExtractShare() float64 { return (t.Move + t.Decode) / t.Serial() }

// stage is the time of one stage.
type stage struct {
	name    string
	seconds float64
	output  bool // it comes behind the device memory
	shared  bool // by all regions of a drive
}

// stageCount is the number of stages.
const stageCount = 8

// byStage returns every stage. Where two take the same time, the first one is the bottleneck.
func (t *Times) byStage() [stageCount]stage {
	return [stageCount]stage{{name: StageMove, seconds: t.Move, shared: true}, {name: StageDecode, seconds: t.Decode},
		{name: StageBucketize, seconds: t.Bucketize}, {name: StageHash, seconds: t.Hash}, {name: StageLog, seconds: t.Log},
		{name: StageDDR, seconds: t.DDR, shared: true}, {name: StageOutput, seconds: t.Output, output: true, shared: true},
		{name: StageNetwork, seconds: t.Network, output: true, shared: true}}
}

// Bottleneck names the longest stage and its time. Where stages overlap it bounds the throughput. The output and the
// network count only where withOutput says so: a drive on the trainer's own machine writes at PCIe speed.
func (t Times) Bottleneck(withOutput bool) (string, float64) {
	name, most := StageMove, t.Move
	for _, s := range t.byStage() {
		if s.seconds > most && (!s.output || withOutput) {
			name, most = s.name, s.seconds
		}
	}
	return name, most
}

// Period is the time from one mini-batch to the next: that of the longest stage where stages overlap, else the sum of
// the stages, in which the traffic of device memory is contained. The network overlaps with the drive in both cases.
func (t Times) Period(withOutput bool) float64 {
	_, most := t.Bottleneck(withOutput)
	if t.Overlap {
		return most
	}
	sum := t.Serial()
	if !withOutput {
		sum -= t.Output
	}
	return max(sum, most)
}

// RowsPerSecond is the throughput: P of the device.
func (t Times) RowsPerSecond(withOutput bool) float64 { return float64(t.Rows) / t.Period(withOutput) }
