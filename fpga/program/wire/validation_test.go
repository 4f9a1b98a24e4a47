package wire_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/operator/boxcox"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/cast"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/decimal"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/float16"
	"github.com/millrace/millrace/fpga/operator/getlocalhour"
	"github.com/millrace/millrace/fpga/operator/hashbytes"
	"github.com/millrace/millrace/fpga/operator/int96time"
	"github.com/millrace/millrace/fpga/operator/listslice"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/logit"
	"github.com/millrace/millrace/fpga/operator/mapid"
	"github.com/millrace/millrace/fpga/operator/minmax"
	"github.com/millrace/millrace/fpga/operator/ngram"
	"github.com/millrace/millrace/fpga/operator/normalize"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/operator/rescale"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/operator/texttoint"
	"github.com/millrace/millrace/fpga/operator/texttoseconds"
	"github.com/millrace/millrace/fpga/operator/zeroextend"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
)

func TestValidate(t *testing.T) {
	nan := math.NaN()
	dense := func(ops ...program.Op) func(*program.Program) {
		return func(p *program.Program) { p.Columns[5].Sinks[1].Ops = ops } // y, Float32
	}
	list := func(ops ...program.Op) func(*program.Program) {
		return func(p *program.Program) { p.Columns[1].Sinks[0].Ops = ops }
	}
	sparse := func(ops ...program.Op) func(*program.Program) {
		return func(p *program.Program) { p.Columns[0].Sinks[0].Ops = ops } // cat_0, Int64
	}
	for name, c := range map[string]struct {
		edit func(p *program.Program)
		want string // behind "program: invalid: "
	}{
		"no source":      {func(p *program.Program) { p.Source = 0 }, "source(0) is not a source"},
		"unknown source": {func(p *program.Program) { p.Source = 4 }, "source(4) is not a source"},
		"unknown policy": {func(p *program.Program) { p.Malformed = 3 }, "malformed(3) is not a policy for malformed rows"},
		"policy without text": {func(p *program.Program) { p.Malformed = program.MalformedNull },
			"a policy for malformed rows with source parquet"},
		"label field": {func(p *program.Program) { p.Label = true }, "a label field with source parquet"},
		"no columns":  {func(p *program.Program) { p.Columns = nil }, "0 columns, want 1 to 65536"},
		"dense above limit": {func(p *program.Program) { p.Output.Dense = program.MaxColumns + 1 },
			"65537 dense columns, want at most 65536"},
		"keys above limit": {func(p *program.Program) { p.Output.Keys = program.MaxColumns + 1 },
			"65537 keys, want at most 65536"},
		"unknown ids": {func(p *program.Program) { p.Output.IDs = 2 }, "ids(2) is not a type of ids"},
		"no kind":     {func(p *program.Program) { p.Columns[0].Kind = 5 }, `column 0 "cat_0": kind(5) is not a kind`},
		"field without text": {func(p *program.Program) { p.Columns[0].Field = 1 },
			`column 0 "cat_0": field 1 with source parquet`},
		"bytes in text": {func(p *program.Program) { p.Source = program.CriteoTSV; p.Columns[0].Kind = program.Bytes },
			`column 0 "cat_0": source criteo-tsv has int64 scalars only`},
		"list in text": {func(p *program.Program) { p.Source = program.CriteoBinary; p.Columns[0].List = true },
			`column 0 "cat_0": source criteo-bin has int64 scalars only`},
		"field above limit": {func(p *program.Program) { p.Source = program.CriteoTSV; p.Columns[0].Field = 40 },
			`column 0 "cat_0": field 40, want 0 to 39`},
		"label field absent": {func(p *program.Program) { p.Source = program.CriteoTSV },
			`column 0 "cat_0": rows without a label field have no field 0`},
		"no sinks": {func(p *program.Program) { p.Columns[6].Sinks = nil }, `column 6 "label": no sinks`},
		"a list feeds two": {func(p *program.Program) {
			p.Columns[1].Sinks = append(p.Columns[1].Sinks, p.Columns[1].Sinks...)
		},
			`column 1 "tags.list.element": a list feeds 2 sinks, want 1`},
		"a list is dense": {func(p *program.Program) {
			p.Columns[5].List = true
			p.Columns[5].Sinks = p.Columns[5].Sinks[1:]
		},
			`column 5 "y": sink 0 (dense 0): a list cannot be dense, unless fixed_length ends its operators`},
		"a list is a label": {func(p *program.Program) { p.Columns[6].List = true },
			`column 6 "label": sink 0 (label 0): a list cannot be a label`},
		"a list in fixed": {func(p *program.Program) { p.Output.Fixed = true },
			`column 1 "tags.list.element": sink 0 (sparse 1): a list in an output where every length is 1`},
		"no tensor": {func(p *program.Program) { p.Columns[0].Sinks[0].To = 0 },
			`column 0 "cat_0": sink 0 (dest(0) 0): dest(0) is not a tensor`},
		"label not in output": {func(p *program.Program) { p.Output.Label = false },
			`column 6 "label": sink 0 (label 0): the output has no label`},
		"label not written": {func(p *program.Program) { p.Columns = p.Columns[:6] }, "no column writes the label"},
		"label twice": {func(p *program.Program) { p.Columns[6].Sinks = append(p.Columns[6].Sinks, p.Columns[6].Sinks...) },
			`column 6 "label": sink 1 (label 0): the label is written twice`},
		"label index": {func(p *program.Program) { p.Columns[6].Sinks[0].Index = 1 },
			`column 6 "label": sink 0 (label 1): index 1, want 0`},
		"dense out of range": {func(p *program.Program) { p.Columns[5].Sinks[1].Index = 2 },
			`column 5 "y": sink 1 (dense 2): the output has 2 dense columns`},
		"dense twice": {func(p *program.Program) { p.Columns[5].Sinks[1].Index = 1 },
			`column 5 "y": sink 1 (dense 1): the dense column is written twice`},
		"dense not written": {func(p *program.Program) { p.Output.Dense = 3 }, "2 of 3 dense columns are written"},
		"key out of range": {func(p *program.Program) { p.Columns[0].Sinks[0].Index = 7 },
			`column 0 "cat_0": sink 0 (sparse 7): the output has 7 keys`},
		"keys out of order": {func(p *program.Program) { p.Columns[0].Sinks[0].Index = 1 },
			`column 0 "cat_0": sink 0 (sparse 1): key 0 is due: keys are written in order, each once`},
		"key twice": {func(p *program.Program) { p.Columns[1].Sinks[0].Index = 0 },
			`column 1 "tags.list.element": sink 0 (sparse 0): key 1 is due: keys are written in order, each once`},
		"key not written": {func(p *program.Program) { p.Output.Keys = 8 }, "7 of 8 keys are written"},
		"keys behind the rest": {func(p *program.Program) { p.Columns = append(p.Columns[6:], p.Columns[:6]...) },
			`column 1 "cat_0": feeds a key behind a column that feeds none`},

		"ends as int64": {func(p *program.Program) { p.Columns[6].Sinks[0].Ops = nil },
			`column 6 "label": sink 0 (label 0): ends as int64, want float32`},
		"ends as float32": {sparse(convert.Op{To: program.Float32}),
			`column 0 "cat_0": sink 0 (sparse 0): ends as float32, want int64`},
		"too many operators": {sparse(make([]program.Op, program.MaxOps+1)...),
			`column 0 "cat_0": sink 0 (sparse 0): 65 operators, want at most 64`},
		"nil operator":  {sparse(nil), `column 0 "cat_0": sink 0 (sparse 0): operator 0: is nil`},
		"nil bucketize": {sparse((*bucketize.Op)(nil)), `column 0 "cat_0": sink 0 (sparse 0): operator 0: is nil`},
		"an operator's pointer": {sparse(&fillnull.Op{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: fill_null: is a pointer, want the operator itself`},
		"hash of a float": {dense(sigridhash.Op{Max: 1}),
			`column 5 "y": sink 1 (dense 0): operator 0: sigrid_hash does not take float32`},
		"log of an integer": {sparse(fillnull.Op{}, log.Op{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 1: log does not take int64`},
		"log adds infinity": {dense(log.Op{Add: float32(math.Inf(1))}),
			`column 5 "y": sink 1 (dense 0): operator 0: log: add +Inf is not finite`},
		"logit of an integer": {sparse(fillnull.Op{}, logit.Op{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 1: logit does not take int64`},
		"logit beyond a half": {dense(logit.Op{Eps: 0.50000006}),
			`column 5 "y": sink 1 (dense 0): operator 0: logit: eps 0.50000006, want a finite number of at most 0.5`},
		"logit by NaN": {dense(logit.Op{Eps: float32(nan)}),
			`column 5 "y": sink 1 (dense 0): operator 0: logit: eps NaN, want a finite number of at most 0.5`},
		"box_cox of infinity": {dense(boxcox.Op{Lambda1: float32(math.Inf(1))}),
			`column 5 "y": sink 1 (dense 0): operator 0: box_cox: lambda1 +Inf, lambda2 0 are not finite`},
		"box_cox of no mode": {dense(boxcox.Op{Mode: 2}),
			`column 5 "y": sink 1 (dense 0): operator 0: box_cox: mode(2) is not a mode`},
		"box_cox of rap with lambda2": {dense(boxcox.Op{Lambda2: 1, Mode: boxcox.RAP}),
			`column 5 "y": sink 1 (dense 0): operator 0: box_cox: lambda2 1 with mode rap, which has none`},
		"normalize of an integer": {sparse(fillnull.Op{}, normalize.Op{Deviation: 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 1: normalize does not take int64`},
		"normalize by less than nothing": {dense(normalize.Op{Deviation: -1}),
			`column 5 "y": sink 1 (dense 0): operator 0: ` +
				`normalize: mean 0, deviation -1: want 0 or normal float32 numbers, the deviation not below 0`},
		"normalize by NaN": {dense(normalize.Op{Mean: nan}), `column 5 "y": sink 1 (dense 0): operator 0: ` +
			`normalize: mean NaN, deviation 0: want 0 or normal float32 numbers, the deviation not below 0`},
		"normalize by very little": {dense(normalize.Op{Deviation: 0x1p-127}),
			`column 5 "y": sink 1 (dense 0): operator 0: ` +
				`normalize: mean 0, deviation 5.877471754111438e-39: want 0 or normal float32 numbers, the deviation not below 0`},
		"min_max that descends": {dense(minmax.Op{Min: 1}), `column 5 "y": sink 1 (dense 0): operator 0: ` +
			`min_max: from 1 to 0: want 0 or normal float32 numbers that do not descend`},
		"min_max to infinity": {dense(minmax.Op{Max: math.Inf(1)}), `column 5 "y": sink 1 (dense 0): operator 0: ` +
			`min_max: from 0 to +Inf: want 0 or normal float32 numbers that do not descend`},
		"list_slice of a scalar": {sparse(listslice.Op{End: 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: list_slice: takes a list`},
		"list_slice to a length of each list's own": {list(listslice.Op{End: -1, Padded: true}), `column 1 ` +
			`"tags.list.element": sink 0 (sparse 1): operator 0: list_slice: from 0 to -1, padded: the length of the part ` +
			`depends on the list`},
		"list_slice to the end, padded": {list(listslice.Op{End: listslice.NoEnd, Padded: true}), `column 1 ` +
			`"tags.list.element": sink 0 (sparse 1): operator 0: list_slice: from 0 to 9223372036854775807, padded: a part of ` +
			`more than 1024 elements`},
		"list_slice above the limit": {list(listslice.Op{Start: -1025, End: listslice.NoEnd, Padded: true}), `column 1 ` +
			`"tags.list.element": sink 0 (sparse 1): operator 0: list_slice: from -1025 to 9223372036854775807, padded: a ` +
			`part of more than 1024 elements`},
		"ngram of a scalar": {sparse(ngram.Op{N: 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: ngram: takes a list`},
		"ngram of nothing": {sparse(ngram.Op{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: ngram: n 0, want 1 to 16`},
		"ngram of no mode": {sparse(ngram.Op{N: 1, Mode: 2}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: ngram: mode(2) is not a mode`},
		"windows of windows": {func(p *program.Program) {
			p.Columns[1].Sinks[0].Ops = []program.Op{ngram.Op{N: 2, Mode: ngram.RAP}, firstx.Op{N: 3},
				ngram.Op{N: 2, Mode: ngram.RAP}}
		}, `column 1 "tags.list.element": sink 0 (sparse 1): operator 2: ngram: mode rap a second time in a chain`},
		"ngram above limit": {sparse(ngram.Op{N: ngram.MaxN + 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: ngram: n 17, want 1 to 16`},
		"hash_bytes of numbers": {sparse(hashbytes.Op{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: hash_bytes does not take int64`},
		"hash_bytes of another function": {func(p *program.Program) {
			p.Columns[2].Sinks[0].Ops[0] = hashbytes.Op{Function: 3}
		},
			`column 2 "hex": sink 0 (sparse 2): operator 0: hash_bytes: function(3) is not a hash function`},
		"get_local_hour of a float": {dense(&getlocalhour.Op{Starts: []int64{math.MinInt64}, Offsets: []int64{0}}),
			`column 5 "y": sink 1 (dense 0): operator 0: get_local_hour does not take float32`},
		"nil get_local_hour": {sparse((*getlocalhour.Op)(nil)), `column 0 "cat_0": sink 0 (sparse 0): operator 0: is nil`},
		"get_local_hour of nothing": {sparse(&getlocalhour.Op{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: get_local_hour: 0 times, want 1 to 4096`},
		"get_local_hour of many": {sparse(&getlocalhour.Op{Starts: make([]int64, getlocalhour.MaxChanges+1)}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: get_local_hour: 4097 times, want 1 to 4096`},
		"get_local_hour without an offset": {sparse(&getlocalhour.Op{Starts: []int64{math.MinInt64, 0}, Offsets: []int64{0}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: get_local_hour: 2 times and 1 offsets`},
		"get_local_hour from 0 on": {sparse(&getlocalhour.Op{Starts: []int64{0}, Offsets: []int64{0}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: get_local_hour: the first time is 0, want the least int64`},
		"get_local_hour of equal times": {sparse(&getlocalhour.Op{Starts: []int64{math.MinInt64, 5, 5},
			Offsets: make([]int64, 3)}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: get_local_hour: time 2 (5) is not above the one before`},
		"get_local_hour a day ahead": {sparse(&getlocalhour.Op{Starts: []int64{math.MinInt64}, Offsets: []int64{86400}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: get_local_hour: offset 0 is 86400 seconds, want less than a day`},
		"nil map_id": {sparse((*mapid.Op)(nil)), `column 0 "cat_0": sink 0 (sparse 0): operator 0: is nil`},
		"map_id of nothing": {sparse(&mapid.Op{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: map_id: 0 values, want 1 to 1048576`},
		"map_id of many": {sparse(&mapid.Op{Values: make([]int64, program.MaxBorders+1)}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: map_id: 1048577 values, want 1 to 1048576`},
		"map_id without a value": {sparse(&mapid.Op{Keys: []int64{1, 2}, Values: []int64{1}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: map_id: 2 keys and 1 values`},
		"map_id of equal keys": {sparse(&mapid.Op{Keys: []int64{1, 1}, Values: []int64{1, 2}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: map_id: key 1 (1) is not above the one before`},
		"rescale by nothing": {sparse(rescale.Op{Multiplier: 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: rescale: factors 1/0, want at least 1, and one of them 1`},
		"rescale by less": {sparse(rescale.Op{Multiplier: -1, Divisor: 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: rescale: factors -1/1, want at least 1, and one of them 1`},
		"rescale both ways": {sparse(rescale.Op{Multiplier: 2, Divisor: 2}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: rescale: factors 2/2, want at least 1, and one of them 1`},
		"int96_time of numbers": {sparse(int96time.Op{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: int96_time does not take int64`},
		"int96_time to another unit": {func(p *program.Program) { p.Columns[2].Sinks[0].Ops[0] = int96time.Op{To: 2} },
			`column 2 "hex": sink 0 (sparse 2): operator 0: int96_time: unit(2) is not a unit of time`},
		"cast of an int64": {sparse(cast.Op{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: cast does not take int64`},
		"cast to no type": {sparse(cast.Op{To: cast.Float64Bits + 1, From: cast.Unsigned}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: cast: target(4) is not a type`},
		"cast to a real number that overflows": {sparse(cast.Op{To: cast.Float32, Overflow: cast.Null}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: cast: overflow as_null of float32, want one of int64`},
		"cast with another overflow": {sparse(cast.Op{Overflow: cast.Null + 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: cast: overflow overflow(2) of int64, want one of int64`},
		"cast of unsigned texts": {func(p *program.Program) {
			p.Columns[2].Sinks[0].Ops[0] = cast.Op{From: cast.Unsigned}
		}, `column 2 "hex": sink 0 (sparse 2): operator 0: cast: unsigned values of the kind bytes, want unsigned integers`},
		"cast from another source": {sparse(cast.Op{From: cast.Unsigned + 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: cast: source(2) values of the kind int64, want unsigned integers`},
		"text_to_int of numbers": {sparse(texttoint.Op{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: text_to_int does not take int64`},
		"text_to_seconds with a great offset": {func(p *program.Program) {
			p.Columns[2].Sinks[0].Ops[0] = texttoseconds.Op{Assumes: true, Offset: texttoseconds.MaxOffset + 1}
		}, `column 2 "hex": sink 0 (sparse 2): operator 0: text_to_seconds: an offset of 86341 seconds, want at most ` +
			`86340, and 0 where none is assumed`},
		"text_to_seconds with a small offset": {func(p *program.Program) {
			p.Columns[2].Sinks[0].Ops[0] = texttoseconds.Op{Assumes: true, Offset: -texttoseconds.MaxOffset - 1}
		}, `column 2 "hex": sink 0 (sparse 2): operator 0: text_to_seconds: an offset of -86341 seconds, want at most ` +
			`86340, and 0 where none is assumed`},
		"text_to_seconds with an offset that is not assumed": {func(p *program.Program) {
			p.Columns[2].Sinks[0].Ops[0] = texttoseconds.Op{Offset: 1}
		}, `column 2 "hex": sink 0 (sparse 2): operator 0: text_to_seconds: an offset of 1 seconds, want at most 86340, ` +
			`and 0 where none is assumed`},
		"decimal of a great scale": {func(p *program.Program) {
			p.Columns[2].Sinks[0].Ops[0] = decimal.Op{Scale: decimal.MaxScale + 1, To: program.Float32}
		}, `column 2 "hex": sink 0 (sparse 2): operator 0: decimal: scale 77, want at most 76`},
		"decimal of integers to integers": {sparse(decimal.Op{To: program.Int64}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: decimal does not take int64`},
		"decimal to scaled integers": {func(p *program.Program) {
			p.Columns[2].Sinks[0].Ops[0] = decimal.Op{Scale: 1, To: program.Int64}
		},
			`column 2 "hex": sink 0 (sparse 2): operator 0: decimal: scale 1 of integers, want 0`},
		"decimal to bytes": {func(p *program.Program) { p.Columns[2].Sinks[0].Ops[0] = decimal.Op{To: program.Bytes} },
			`column 2 "hex": sink 0 (sparse 2): operator 0: decimal does not take bytes`},
		"float16 of numbers": {sparse(float16.Op{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: float16 does not take int64`},
		"convert to nothing": {sparse(convert.Op{To: program.Int64}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: convert does not take int64`},
		"max zero": {sparse(sigridhash.Op{Max: 0}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: sigrid_hash: max 0, want more than 0`},
		"modulus negative": {sparse(positivemodulus.Op{M: -1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: positive_modulus: modulus -1, want more than 0`},
		"firstx of a scalar": {sparse(firstx.Op{N: 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: firstx: takes a list`},
		"firstx negative": {sparse(firstx.Op{N: -1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: firstx: n -1, want at least 0`},
		"clamp of integers": {sparse(clamp.Op{IntLo: 1}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: clamp: bounds 1 > 0`},
		"clamp of floats": {dense(clamp.Op{FloatLo: 1}),
			`column 5 "y": sink 1 (dense 0): operator 0: clamp: bounds 1 > 0`},
		"clamp by NaN": {dense(clamp.Op{FloatHi: nan}),
			`column 5 "y": sink 1 (dense 0): operator 0: clamp: bounds 0 > NaN`},
		"clamp beyond float32": {dense(clamp.Op{FloatHi: 0.1}),
			`column 5 "y": sink 1 (dense 0): operator 0: clamp: bounds 0, 0.1 are not float32`},
		"no borders": {sparse(&bucketize.Op{}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: bucketize: 0 lists of borders, want 1`},
		"two lists of borders": {sparse(&bucketize.Op{BordersInt: []int64{1}, Borders32: []float32{1}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: bucketize: 2 lists of borders, want 1`},
		"borders of floats": {sparse(&bucketize.Op{Borders32: []float32{1}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: bucketize does not take int64`},
		"borders descend": {sparse(&bucketize.Op{BordersInt: []int64{1, 2, 1}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: bucketize: border 2 (1) is not ordered`},
		"a border is NaN": {dense(&bucketize.Op{Borders32: []float32{0, float32(nan)}}),
			`column 5 "y": sink 1 (dense 0): operator 0: bucketize: border 1 (NaN) is not ordered`},
		"a float64 descends": {dense(&bucketize.Op{Borders64: []float64{0, -1}}),
			`column 5 "y": sink 1 (dense 0): operator 0: bucketize: border 1 (-1) is not ordered`},
		"unknown side": {sparse(&bucketize.Op{Side: 2, BordersInt: []int64{1}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: bucketize: side(2) is not a side`},
		"unknown rule for NaN": {sparse(&bucketize.Op{NaN: 4, BordersInt: []int64{1}}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: bucketize: nan(4) is not a rule for NaN`},
		"borders above limit": {sparse(&bucketize.Op{BordersInt: make([]int64, program.MaxBorders+1)}),
			`column 0 "cat_0": sink 0 (sparse 0): operator 0: bucketize: 1048577 borders, want at most 1048576`},
	} {
		t.Run(name, func(t *testing.T) {
			p := everyOp()
			c.edit(p)
			err := p.Validate()
			require.ErrorIs(t, err, program.ErrInvalid)
			assert.EqualError(t, err, "program: invalid: "+c.want)
			if !strings.Contains(c.want, "nil") && !strings.Contains(c.want, "is a pointer") {
				_, err = operator.Unmarshal(wire.Marshal(p))
				require.Error(t, err, "what is not valid is not read either")
			}
		})
	}
}

func TestValidateTakes(t *testing.T) {
	for name, edit := range map[string]func(p *program.Program){
		"borders twice": func(p *program.Program) {
			p.Columns[4].Sinks[0].Ops[0] = &bucketize.Op{Borders64: []float64{1, 1, 1}}
		},
		"infinite borders": func(p *program.Program) {
			p.Columns[4].Sinks[0].Ops[0] = &bucketize.Op{Borders64: []float64{math.Inf(-1), math.Inf(1)}}
		},
		"firstx of nothing": func(p *program.Program) { p.Columns[1].Sinks[0].Ops[0] = firstx.Op{} },
		"ngram at limit":    func(p *program.Program) { p.Columns[1].Sinks[0].Ops[0] = ngram.Op{N: ngram.MaxN} },
		"windows of ids": func(p *program.Program) {
			p.Columns[1].Sinks[0].Ops = []program.Op{ngram.Op{N: 2, Mode: ngram.RAP}, ngram.Op{N: 2}}
		},
		"last hash function": func(p *program.Program) {
			p.Columns[2].Sinks[0].Ops[0] = hashbytes.Op{Function: hashbytes.FarmHash}
		},
		"map_id at limit": func(p *program.Program) {
			p.Columns[0].Sinks[0].Ops[0] = &mapid.Op{Values: make([]int64, program.MaxBorders)}
		},
		"most changes of a zone": func(p *program.Program) {
			o := &getlocalhour.Op{Starts: make([]int64, getlocalhour.MaxChanges),
				Offsets: make([]int64, getlocalhour.MaxChanges)}
			for i := range o.Starts {
				o.Starts[i], o.Offsets[i] = int64(i), getlocalhour.MaxOffset*int64(i%2*2-1)
			}
			o.Starts[0] = math.MinInt64
			p.Columns[0].Sinks[0].Ops[0] = o
		},
		"the least deviation": func(p *program.Program) { p.Columns[5].Sinks[1].Ops[0] = normalize.Op{Deviation: 0x1p-126} },
		"the widest bounds": func(p *program.Program) {
			p.Columns[5].Sinks[1].Ops[0] = minmax.Op{Min: -math.MaxFloat32, Max: math.MaxFloat32}
		},
		"list_slice at limit": func(p *program.Program) {
			p.Columns[1].Sinks[0].Ops[0] = listslice.Op{Start: -listslice.MaxLength, End: listslice.NoEnd,
				Padded: true, PadInt: -1}
		},
		"list_slice of each list's own length": func(p *program.Program) {
			p.Columns[1].Sinks[0].Ops[0] = listslice.Op{Start: 5, End: math.MinInt64}
		},
		"logit to a half":  func(p *program.Program) { p.Columns[5].Sinks[1].Ops[0] = logit.Op{Eps: 0.5} },
		"clamp to a point": func(p *program.Program) { p.Columns[5].Sinks[1].Ops[0] = clamp.Op{} },
		"64 operators": func(p *program.Program) {
			ops := make([]program.Op, program.MaxOps)
			for i := range ops {
				ops[i] = zeroextend.Op{}
			}
			p.Columns[0].Sinks[0].Ops = ops
		},
		"the longest name": func(p *program.Program) { p.Columns[0].Name = strings.Repeat("x", program.MaxName) },
		"a column twice":   func(p *program.Program) { p.Columns[1].Name = p.Columns[0].Name },
	} {
		t.Run(name, func(t *testing.T) {
			p := everyOp()
			edit(p)
			require.NoError(t, p.Validate())
			q, err := operator.Unmarshal(wire.Marshal(p))
			require.NoError(t, err)
			assert.Equal(t, p, q)
		})
	}
}
