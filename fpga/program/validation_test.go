package program

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValidate(t *testing.T) {
	nan := math.NaN()
	dense := func(ops ...Op) func(*Program) {
		return func(p *Program) { p.Columns[5].Sinks[1].Ops = ops } // y, Float32
	}
	list := func(ops ...Op) func(*Program) {
		return func(p *Program) { p.Columns[1].Sinks[0].Ops = ops }
	}
	sparse := func(ops ...Op) func(*Program) {
		return func(p *Program) { p.Columns[0].Sinks[0].Ops = ops } // cat_0, Int64
	}
	for name, c := range map[string]struct {
		edit func(p *Program)
		want string // behind "program: invalid: "
	}{
		"no source":      {func(p *Program) { p.Source = 0 }, "source(0) is no source"},
		"unknown source": {func(p *Program) { p.Source = 4 }, "source(4) is no source"},
		"unknown policy": {func(p *Program) { p.Malformed = 3 }, "malformed(3) is no policy for malformed rows"},
		"policy without text": {func(p *Program) { p.Malformed = MalformedNull },
			"a policy for malformed rows with source parquet"},
		"label field": {func(p *Program) { p.Label = true }, "a label field with source parquet"},
		"no columns":  {func(p *Program) { p.Columns = nil }, "0 columns, want 1 to 65536"},
		"dense above limit": {func(p *Program) { p.Output.Dense = MaxColumns + 1 },
			"65537 dense columns, want at most 65536"},
		"keys above limit": {func(p *Program) { p.Output.Keys = MaxColumns + 1 }, "65537 keys, want at most 65536"},
		"unknown ids":      {func(p *Program) { p.Output.IDs = 2 }, "ids(2) is no type of ids"},
		"no kind":          {func(p *Program) { p.Columns[0].Kind = 5 }, `column 0 "cat_0": kind(5) is no kind`},
		"field without text": {func(p *Program) { p.Columns[0].Field = 1 },
			`column 0 "cat_0": field 1 with source parquet`},
		"bytes in text": {func(p *Program) { p.Source = CriteoTSV; p.Columns[0].Kind = Bytes },
			`column 0 "cat_0": source criteo-tsv has int64 scalars only`},
		"list in text": {func(p *Program) { p.Source = CriteoBinary; p.Columns[0].List = true },
			`column 0 "cat_0": source criteo-bin has int64 scalars only`},
		"field above limit": {func(p *Program) { p.Source = CriteoTSV; p.Columns[0].Field = 40 },
			`column 0 "cat_0": field 40, want 0 to 39`},
		"label field absent": {func(p *Program) { p.Source = CriteoTSV },
			`column 0 "cat_0": rows without a label field have no field 0`},
		"no sinks": {func(p *Program) { p.Columns[6].Sinks = nil }, `column 6 "label": no sinks`},
		"a list feeds two": {func(p *Program) { p.Columns[1].Sinks = append(p.Columns[1].Sinks, p.Columns[1].Sinks...) },
			`column 1 "tags.list.element": a list feeds 2 sinks, want 1`},
		"a list is dense": {func(p *Program) { p.Columns[5].List = true; p.Columns[5].Sinks = p.Columns[5].Sinks[1:] },
			`column 5 "y": sink 0 (dense 0): a list cannot be dense, unless fixed_length ends its operators`},
		"a list is a label": {func(p *Program) { p.Columns[6].List = true },
			`column 6 "label": sink 0 (label 0): a list cannot be a label`},
		"a list in fixed": {func(p *Program) { p.Output.Fixed = true },
			`column 1 "tags.list.element": sink 0 (sparse 1): a list in an output where every length is 1`},
		"no tensor": {func(p *Program) { p.Columns[0].Sinks[0].To = 0 },
			`column 0 "cat_0": sink 0 (dest(0) 0): dest(0) is no tensor`},
		"label not in output": {func(p *Program) { p.Output.Label = false },
			`column 6 "label": sink 0 (label 0): the output has no label`},
		"label not written": {func(p *Program) { p.Columns = p.Columns[:6] }, "no column writes the label"},
		"label twice": {func(p *Program) { p.Columns[6].Sinks = append(p.Columns[6].Sinks, p.Columns[6].Sinks...) },
			`column 6 "label": sink 1 (label 0): the label is written twice`},
		"label index": {func(p *Program) { p.Columns[6].Sinks[0].Index = 1 },
			`column 6 "label": sink 0 (label 1): index 1, want 0`},
		"dense out of range": {func(p *Program) { p.Columns[5].Sinks[1].Index = 2 },
			`column 5 "y": sink 1 (dense 2): the output has 2 dense columns`},
		"dense twice": {func(p *Program) { p.Columns[5].Sinks[1].Index = 1 },
			`column 5 "y": sink 1 (dense 1): the dense column is written twice`},
		"dense not written": {func(p *Program) { p.Output.Dense = 3 }, "2 of 3 dense columns are written"},
		"key out of range": {func(p *Program) { p.Columns[0].Sinks[0].Index = 7 },
			`column 0 "cat_0": sink 0 (sparse 7): the output has 7 keys`},
		"keys out of order": {func(p *Program) { p.Columns[0].Sinks[0].Index = 1 },
			`column 0 "cat_0": sink 0 (sparse 1): key 0 is due: keys are written in order, each once`},
		"key twice": {func(p *Program) { p.Columns[1].Sinks[0].Index = 0 },
			`column 1 "tags.list.element": sink 0 (sparse 0): key 1 is due: keys are written in order, each once`},
		"key not written": {func(p *Program) { p.Output.Keys = 8 }, "7 of 8 keys are written"},
		"keys behind the rest": {func(p *Program) { p.Columns = append(p.Columns[6:], p.Columns[:6]...) },
			`column 1 "cat_0": feeds a key behind a column that feeds none`},

		"ends as int64": {func(p *Program) { p.Columns[6].Sinks[0].Ops = nil },
			`column 6 "label": sink 0 (label 0): ends as int64, want float32`},
		"ends as float32": {sparse(Convert{To: Float32}),
			`column 0 "cat_0": sink 0 (sparse 0): ends as float32, want int64`},
		"too many operators": {sparse(make([]Op, MaxOps+1)...),
			`column 0 "cat_0": sink 0 (sparse 0): 65 operators, want at most 64`},
		"nil operator":  {sparse(nil), `column 0 "cat_0": sink 0 (sparse 0): operator 0: is nil`},
		"nil bucketize": {sparse((*Bucketize)(nil)), `column 0 "cat_0": sink 0 (sparse 0): operator 0: is nil`},
		"an operator's pointer": {sparse(&FillNull{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: *program.FillNull is no operator of this build`},
		"hash of a float": {dense(SigridHash{Max: 1}),
			`column 5 "y": sink 1 (dense 0): operator 0: sigrid_hash does not take float32`},
		"log of an integer": {sparse(FillNull{}, Log{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 1: log does not take int64`},
		"log adds infinity": {dense(Log{Add: float32(math.Inf(1))}),
			`column 5 "y": sink 1 (dense 0): operator 0: log: add +Inf is not finite`},
		"logit of an integer": {sparse(FillNull{}, Logit{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 1: logit does not take int64`},
		"logit beyond a half": {dense(Logit{Eps: 0.50000006}),
			`column 5 "y": sink 1 (dense 0): operator 0: logit: eps 0.50000006, want a finite number of at most 0.5`},
		"logit by NaN": {dense(Logit{Eps: float32(nan)}),
			`column 5 "y": sink 1 (dense 0): operator 0: logit: eps NaN, want a finite number of at most 0.5`},
		"box_cox of infinity": {dense(BoxCox{Lambda1: float32(math.Inf(1))}),
			`column 5 "y": sink 1 (dense 0): operator 0: box_cox: lambda1 +Inf, lambda2 0 are not finite`},
		"box_cox of no mode": {dense(BoxCox{Mode: 2}),
			`column 5 "y": sink 1 (dense 0): operator 0: box_cox: mode(2) is no mode`},
		"box_cox of rap with lambda2": {dense(BoxCox{Lambda2: 1, Mode: BoxCoxRAP}),
			`column 5 "y": sink 1 (dense 0): operator 0: box_cox: lambda2 1 with mode rap, which has none`},
		"normalize of an integer": {sparse(FillNull{}, Normalize{Deviation: 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 1: normalize does not take int64`},
		"normalize by less than nothing": {dense(Normalize{Deviation: -1}), `column 5 "y": sink 1 (dense 0): operator 0: ` +
			`normalize: mean 0, deviation -1: want 0 or normal float32 numbers, the deviation not below 0`},
		"normalize by NaN": {dense(Normalize{Mean: nan}), `column 5 "y": sink 1 (dense 0): operator 0: ` +
			`normalize: mean NaN, deviation 0: want 0 or normal float32 numbers, the deviation not below 0`},
		"normalize by very little": {dense(Normalize{Deviation: 0x1p-127}), `column 5 "y": sink 1 (dense 0): operator 0: ` +
			`normalize: mean 0, deviation 5.877471754111438e-39: want 0 or normal float32 numbers, the deviation not below 0`},
		"min_max that descends": {dense(MinMax{Min: 1}), `column 5 "y": sink 1 (dense 0): operator 0: ` +
			`min_max: from 1 to 0: want 0 or normal float32 numbers that do not descend`},
		"min_max to infinity": {dense(MinMax{Max: math.Inf(1)}), `column 5 "y": sink 1 (dense 0): operator 0: ` +
			`min_max: from 0 to +Inf: want 0 or normal float32 numbers that do not descend`},
		"list_slice of a scalar": {sparse(ListSlice{End: 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: list_slice: takes a list`},
		"list_slice to a length of each list's own": {list(ListSlice{End: -1, Padded: true}), `column 1 ` +
			`"tags.list.element": sink 0 (sparse 1): operator 0: list_slice: from 0 to -1, padded: the length of the part ` +
			`depends on the list`},
		"list_slice to the end, padded": {list(ListSlice{End: NoEnd, Padded: true}), `column 1 ` +
			`"tags.list.element": sink 0 (sparse 1): operator 0: list_slice: from 0 to 9223372036854775807, padded: a part of ` +
			`more than 1024 elements`},
		"list_slice above the limit": {list(ListSlice{Start: -1025, End: NoEnd, Padded: true}), `column 1 ` +
			`"tags.list.element": sink 0 (sparse 1): operator 0: list_slice: from -1025 to 9223372036854775807, padded: a ` +
			`part of more than 1024 elements`},
		"ngram of a scalar": {sparse(NGram{N: 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: ngram: takes a list`},
		"ngram of nothing": {sparse(NGram{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: ngram: n 0, want 1 to 16`},
		"ngram of no mode": {sparse(NGram{N: 1, Mode: 2}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: ngram: mode(2) is no mode`},
		"windows of windows": {func(p *Program) {
			p.Columns[1].Sinks[0].Ops = []Op{NGram{N: 2, Mode: NGramRAP}, FirstX{N: 3}, NGram{N: 2, Mode: NGramRAP}}
		}, `column 1 "tags.list.element": sink 0 (sparse 1): operator 2: ngram: mode rap a second time in a chain`},
		"ngram above limit": {sparse(NGram{N: MaxNGram + 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: ngram: n 17, want 1 to 16`},
		"hash_bytes of numbers": {sparse(HashBytes{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: hash_bytes does not take int64`},
		"hash_bytes of another function": {func(p *Program) { p.Columns[2].Sinks[0].Ops[0] = HashBytes{Function: 3} },
			`column 2 "hex": sink 0 (sparse 2): operator 0: hash_bytes: function(3) is no hash function`},
		"get_local_hour of a float": {dense(&LocalHour{Starts: []int64{math.MinInt64}, Offsets: []int64{0}}),
			`column 5 "y": sink 1 (dense 0): operator 0: get_local_hour does not take float32`},
		"nil get_local_hour": {sparse((*LocalHour)(nil)), `column 0 "cat_0": sink 0 (sparse 0): operator 0: is nil`},
		"get_local_hour of nothing": {sparse(&LocalHour{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: get_local_hour: 0 times, want 1 to 4096`},
		"get_local_hour of many": {sparse(&LocalHour{Starts: make([]int64, MaxZoneChanges+1)}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: get_local_hour: 4097 times, want 1 to 4096`},
		"get_local_hour without an offset": {sparse(&LocalHour{Starts: []int64{math.MinInt64, 0}, Offsets: []int64{0}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: get_local_hour: 2 times and 1 offsets`},
		"get_local_hour from 0 on": {sparse(&LocalHour{Starts: []int64{0}, Offsets: []int64{0}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: get_local_hour: the first time is 0, want the least int64`},
		"get_local_hour of equal times": {sparse(&LocalHour{Starts: []int64{math.MinInt64, 5, 5}, Offsets: make([]int64, 3)}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: get_local_hour: time 2 (5) is not above the one before`},
		"get_local_hour a day ahead": {sparse(&LocalHour{Starts: []int64{math.MinInt64}, Offsets: []int64{86400}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: get_local_hour: offset 0 is 86400 seconds, want less than a day`},
		"nil map_id": {sparse((*MapID)(nil)), `column 0 "cat_0": sink 0 (sparse 0): operator 0: is nil`},
		"map_id of nothing": {sparse(&MapID{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: map_id: 0 values, want 1 to 1048576`},
		"map_id of many": {sparse(&MapID{Values: make([]int64, MaxBorders+1)}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: map_id: 1048577 values, want 1 to 1048576`},
		"map_id without a value": {sparse(&MapID{Keys: []int64{1, 2}, Values: []int64{1}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: map_id: 2 keys and 1 values`},
		"map_id of equal keys": {sparse(&MapID{Keys: []int64{1, 1}, Values: []int64{1, 2}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: map_id: key 1 (1) is not above the one before`},
		"rescale by nothing": {sparse(Rescale{Multiplier: 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: rescale: factors 1/0, want at least 1, and one of them 1`},
		"rescale by less": {sparse(Rescale{Multiplier: -1, Divisor: 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: rescale: factors -1/1, want at least 1, and one of them 1`},
		"rescale both ways": {sparse(Rescale{Multiplier: 2, Divisor: 2}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: rescale: factors 2/2, want at least 1, and one of them 1`},
		"int96_time of numbers": {sparse(Int96Time{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: int96_time does not take int64`},
		"int96_time to another unit": {func(p *Program) { p.Columns[2].Sinks[0].Ops[0] = Int96Time{To: 2} },
			`column 2 "hex": sink 0 (sparse 2): operator 0: int96_time: unit(2) is no unit of time`},
		"decimal of a great scale": {func(p *Program) {
			p.Columns[2].Sinks[0].Ops[0] = Decimal{Scale: MaxScale + 1, To: Float32}
		}, `column 2 "hex": sink 0 (sparse 2): operator 0: decimal: scale 77, want at most 76`},
		"decimal of integers to integers": {sparse(Decimal{To: Int64}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: decimal does not take int64`},
		"decimal to scaled integers": {func(p *Program) { p.Columns[2].Sinks[0].Ops[0] = Decimal{Scale: 1, To: Int64} },
			`column 2 "hex": sink 0 (sparse 2): operator 0: decimal: scale 1 of integers, want 0`},
		"decimal to bytes": {func(p *Program) { p.Columns[2].Sinks[0].Ops[0] = Decimal{To: Bytes} },
			`column 2 "hex": sink 0 (sparse 2): operator 0: decimal does not take bytes`},
		"float16 of numbers": {sparse(Float16{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: float16 does not take int64`},
		"convert to nothing": {sparse(Convert{To: Int64}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: convert does not take int64`},
		"max zero": {sparse(SigridHash{Max: 0}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: sigrid_hash: max 0, want more than 0`},
		"modulus negative": {sparse(PositiveModulus{M: -1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: positive_modulus: modulus -1, want more than 0`},
		"firstx of a scalar": {sparse(FirstX{N: 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: firstx: takes a list`},
		"firstx negative": {sparse(FirstX{N: -1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: firstx: n -1, want at least 0`},
		"clamp of integers": {sparse(Clamp{IntLo: 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: clamp: bounds 1 > 0`},
		"clamp of floats": {dense(Clamp{FloatLo: 1}),
			`column 5 "y": sink 1 (dense 0): operator 0: clamp: bounds 1 > 0`},
		"clamp by NaN": {dense(Clamp{FloatHi: nan}),
			`column 5 "y": sink 1 (dense 0): operator 0: clamp: bounds 0 > NaN`},
		"clamp beyond float32": {dense(Clamp{FloatHi: 0.1}),
			`column 5 "y": sink 1 (dense 0): operator 0: clamp: bounds 0, 0.1 are no float32`},
		"no borders": {sparse(&Bucketize{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: bucketize: 0 lists of borders, want 1`},
		"two lists of borders": {sparse(&Bucketize{BordersInt: []int64{1}, Borders32: []float32{1}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: bucketize: 2 lists of borders, want 1`},
		"borders of floats": {sparse(&Bucketize{Borders32: []float32{1}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: bucketize does not take int64`},
		"borders descend": {sparse(&Bucketize{BordersInt: []int64{1, 2, 1}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: bucketize: border 2 (1) is not ordered`},
		"a border is NaN": {dense(&Bucketize{Borders32: []float32{0, float32(nan)}}),
			`column 5 "y": sink 1 (dense 0): operator 0: bucketize: border 1 (NaN) is not ordered`},
		"a float64 descends": {dense(&Bucketize{Borders64: []float64{0, -1}}),
			`column 5 "y": sink 1 (dense 0): operator 0: bucketize: border 1 (-1) is not ordered`},
		"unknown side": {sparse(&Bucketize{Side: 2, BordersInt: []int64{1}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: bucketize: side(2) is no side`},
		"unknown rule for NaN": {sparse(&Bucketize{NaN: 4, BordersInt: []int64{1}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: bucketize: nan(4) is no rule for NaN`},
		"borders above limit": {sparse(&Bucketize{BordersInt: make([]int64, MaxBorders+1)}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: bucketize: 1048577 borders, want at most 1048576`},
	} {
		t.Run(name, func(t *testing.T) {
			p := everyOp()
			c.edit(p)
			err := p.Validate()
			require.ErrorIs(t, err, ErrInvalid)
			assert.EqualError(t, err, "program: invalid: "+c.want)
			if !strings.Contains(c.want, "nil") {
				_, err = Unmarshal(p.Marshal())
				require.Error(t, err, "what is not valid is not read either")
			}
		})
	}
}

func TestValidateTakes(t *testing.T) {
	for name, edit := range map[string]func(p *Program){
		"borders twice": func(p *Program) { p.Columns[4].Sinks[0].Ops[0] = &Bucketize{Borders64: []float64{1, 1, 1}} },
		"infinite borders": func(p *Program) {
			p.Columns[4].Sinks[0].Ops[0] = &Bucketize{Borders64: []float64{math.Inf(-1), math.Inf(1)}}
		},
		"firstx of nothing": func(p *Program) { p.Columns[1].Sinks[0].Ops[0] = FirstX{} },
		"ngram at limit":    func(p *Program) { p.Columns[1].Sinks[0].Ops[0] = NGram{N: MaxNGram} },
		"windows of ids": func(p *Program) {
			p.Columns[1].Sinks[0].Ops = []Op{NGram{N: 2, Mode: NGramRAP}, NGram{N: 2}}
		},
		"last hash function": func(p *Program) {
			p.Columns[2].Sinks[0].Ops[0] = HashBytes{Function: HashFarmHash}
		},
		"map_id at limit": func(p *Program) { p.Columns[0].Sinks[0].Ops[0] = &MapID{Values: make([]int64, MaxBorders)} },
		"most changes of a zone": func(p *Program) {
			o := &LocalHour{Starts: make([]int64, MaxZoneChanges), Offsets: make([]int64, MaxZoneChanges)}
			for i := range o.Starts {
				o.Starts[i], o.Offsets[i] = int64(i), MaxZoneOffset*int64(i%2*2-1)
			}
			o.Starts[0] = math.MinInt64
			p.Columns[0].Sinks[0].Ops[0] = o
		},
		"the least deviation": func(p *Program) { p.Columns[5].Sinks[1].Ops[0] = Normalize{Deviation: 0x1p-126} },
		"the widest bounds": func(p *Program) {
			p.Columns[5].Sinks[1].Ops[0] = MinMax{Min: -math.MaxFloat32, Max: math.MaxFloat32}
		},
		"list_slice at limit": func(p *Program) {
			p.Columns[1].Sinks[0].Ops[0] = ListSlice{Start: -MaxListLength, End: NoEnd, Padded: true, PadInt: -1}
		},
		"list_slice of each list's own length": func(p *Program) {
			p.Columns[1].Sinks[0].Ops[0] = ListSlice{Start: 5, End: math.MinInt64}
		},
		"logit to a half":  func(p *Program) { p.Columns[5].Sinks[1].Ops[0] = Logit{Eps: 0.5} },
		"clamp to a point": func(p *Program) { p.Columns[5].Sinks[1].Ops[0] = Clamp{} },
		"64 operators": func(p *Program) {
			ops := make([]Op, MaxOps)
			for i := range ops {
				ops[i] = ZeroExtend{}
			}
			p.Columns[0].Sinks[0].Ops = ops
		},
		"the longest name": func(p *Program) { p.Columns[0].Name = strings.Repeat("x", MaxName) },
		"a column twice":   func(p *Program) { p.Columns[1].Name = p.Columns[0].Name },
	} {
		t.Run(name, func(t *testing.T) {
			p := everyOp()
			edit(p)
			require.NoError(t, p.Validate())
			q, err := Unmarshal(p.Marshal())
			require.NoError(t, err)
			assert.Equal(t, p, q)
		})
	}
}

// TestValidateLooksAtATableOnce reads a program of many operators over one large table. The program is small on the
// wire, so reading it must be cheap too.
func TestValidateLooksAtATableOnce(t *testing.T) {
	for name, b := range map[string]*Bucketize{
		"float32": {Borders32: []float32{2, 1}},
		"float64": {Borders64: []float64{2, 1}},
		"int64":   {BordersInt: []int64{2, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, b.checkBorders(map[tableKey]bool{}))
			require.NoError(t, b.checkBorders(map[tableKey]bool{b.bordersKey(): true}),
				"a table that was checked is not checked again")
		})
	}
}
