package lane_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	clampop "github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/operator/zeroextend"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/rtl/cosim"
	"github.com/millrace/millrace/fpga/rtl/lane"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// row is a row of the tests' files.
type row struct {
	ID        int64    `parquet:"id"`
	Maybe     *int64   `parquet:"maybe,optional"`
	Narrow    int32    `parquet:"narrow"`
	Unsigned  uint32   `parquet:"unsigned"`
	Rate      float32  `parquet:"rate"`
	Odds      *float32 `parquet:"odds,optional"`
	List      []int64  `parquet:"list,list"`
	Holes     []*int32 `parquet:"holes,list"`
	MaybeList []int64  `parquet:"maybe_list,optional,list"`
	Token     string   `parquet:"token,plain"`
	Word      *string  `parquet:"word,plain,optional"`
	Wide      float64  `parquet:"wide"`
	Flag      bool     `parquet:"flag"`
}

// drawRows draws rows of few different values, so that dictionaries stay small.
func drawRows(n int) []row {
	draw := rand.New(rand.NewPCG(3, 14))
	id := func() int64 { return int64(scatter(draw.Uint64N(50))) >> draw.IntN(3) }
	rows := make([]row, n)
	for i := range rows {
		r := &rows[i]
		*r = row{ID: id(), Narrow: int32(id()), Unsigned: uint32(id()), Rate: float32(draw.IntN(40)) - 3.5,
			Token: fmt.Sprintf("%x", draw.Uint32()), Wide: 0.5, Flag: i%3 == 0}
		if i%11 == 0 {
			r.Rate = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1))}[i/11%3]
		}
		if draw.IntN(4) > 0 {
			maybe, odds := id(), float32(draw.IntN(30))/7
			r.Maybe, r.Odds = &maybe, &odds
		}
		if draw.IntN(4) > 0 {
			word := fmt.Sprintf("%X", draw.Uint32()>>draw.IntN(32))[draw.IntN(2):]
			r.Word = &word
		}
		for range draw.IntN(5) {
			narrow := int32(id())
			hole := &narrow
			if draw.IntN(6) == 0 {
				hole = nil
			}
			r.List, r.Holes = append(r.List, id()), append(r.Holes, hole)
		}
		switch draw.IntN(3) {
		case 0:
			r.MaybeList = []int64{}
		case 1:
			r.MaybeList = []int64{id(), id()}
		}
	}
	return rows
}

// scatter spreads small numbers over all of uint64.
func scatter(n uint64) uint64 { return n * 0x9e3779b97f4a7c15 }

// testFile is a file, read.
type testFile struct {
	data []byte
	file *format.File
}

func writeFile(t *testing.T, rows []row, options ...pq.WriterOption) testFile {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, pq.Write(&b, rows, options...))
	f, err := format.ReadFooter(bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(t, err)
	return testFile{b.Bytes(), f}
}

// testFiles are the same rows in PLAIN and dictionary pages of both versions, packed and not, in two row groups of many
// pages.
func testFiles(t *testing.T) map[string]testFile {
	rows := drawRows(700)
	files := make(map[string]testFile)
	for _, version := range []int{1, 2} {
		for name, codec := range map[string]pq.WriterOption{"": nil, " snappy": pq.Compression(&pq.Snappy)} {
			options := []pq.WriterOption{pq.MaxRowsPerRowGroup(400), pq.PageBufferSize(900), pq.DataPageVersion(version)}
			if codec != nil {
				options = append(options, codec)
			}
			files[fmt.Sprintf("v%d plain%s", version, name)] = writeFile(t, rows, options...)
			for _, kind := range []pq.Kind{pq.Int32, pq.Int64, pq.Float} {
				options = append(options, pq.DefaultEncodingFor(kind, &pq.RLEDictionary))
			}
			files[fmt.Sprintf("v%d dictionary%s", version, name)] = writeFile(t, rows, options...)
		}
	}
	return files
}

// sparse returns a column that feeds a key.
func sparse(name string, kind program.Kind, ops ...program.Op) program.Column {
	return program.Column{Name: name, Kind: kind, Sinks: []program.Sink{{To: program.ToSparse, Ops: ops}}}
}

// list returns a column of lists that feeds a key.
func list(name string, ops ...program.Op) program.Column {
	c := sparse(name, program.Int64, ops...)
	c.List = true
	return c
}

// dense returns a column that feeds a column of dense.
func dense(name string, kind program.Kind, ops ...program.Op) program.Column {
	return program.Column{Name: name, Kind: kind, Sinks: []program.Sink{{To: program.ToDense, Ops: ops}}}
}

// programOf returns a program of columns; their sinks take the keys and the columns of dense in order.
func programOf(columns ...program.Column) *program.Program {
	p := &program.Program{Source: program.Parquet}
	for _, c := range columns {
		c.Sinks = slices.Clone(c.Sinks)
		for i := range c.Sinks {
			switch s := &c.Sinks[i]; s.To {
			case program.ToSparse:
				s.Index = p.Output.Keys
				p.Output.Keys++
			case program.ToDense:
				s.Index = p.Output.Dense
				p.Output.Dense++
			default:
				p.Output.Label = true
			}
		}
		p.Columns = append(p.Columns, c)
	}
	return p
}

var (
	toFloat = convert.Op{To: program.Float32}
	hash    = sigridhash.Op{Salt: 7, Max: 500_000}
	fill    = fillnull.Op{Int: 9, Float: 0.25}
	buckets = &bucketize.Op{Borders32: []float32{-1, 0, 0, 2.5, 30}}
)

// testPrograms have every operator that a unit computes, by itself and in the chains of RM1 and RM5.
func testPrograms() map[string]*program.Program {
	clamp := clampop.Op{IntLo: -1 << 40, IntHi: 1 << 40, FloatLo: 0, FloatHi: 20}
	narrow := dense("narrow", program.Int64, toFloat)
	narrow.Sinks[0].To = program.ToLabel
	absent := sparse("nowhere", program.Int64, fill, hash)
	absent.Absent = true
	absentList := list("nowhere_list", hash)
	absentList.Absent = true
	ids := clampop.Op{IntLo: math.MinInt32, IntHi: math.MaxInt32}
	programs := map[string]*program.Program{
		"nothing":          programOf(sparse("id", program.Int64)),
		"nulls":            programOf(sparse("maybe", program.Int64)),
		"int32":            programOf(sparse("narrow", program.Int64)),
		"unsigned":         programOf(sparse("unsigned", program.Int64)),
		"fill_null":        programOf(sparse("maybe", program.Int64, fill)),
		"clamp":            programOf(sparse("maybe", program.Int64, clamp)),
		"sigrid_hash":      programOf(sparse("id", program.Int64, hash)),
		"positive_modulus": programOf(sparse("id", program.Int64, positivemodulus.Op{M: 1<<32 - 1})),
		"hash of nulls":    programOf(sparse("maybe", program.Int64, hash, fill)),
		"bucketize":        programOf(sparse("rate", program.Float32, buckets)),
		"hex_to_int":       programOf(sparse("token", program.Bytes, hextoint.Op{})),
		"hex_to_int nulls": programOf(sparse("word", program.Bytes, hextoint.Op{}, fill, hash)),
		"lists":            programOf(list("list"), list("list", hash), list("maybe_list", fill, hash)),
		"lists with nulls": programOf(list("holes"), list("holes", hash), list("holes", hash, fill),
			list("holes", fill, hash)),
		"float32":       programOf(dense("rate", program.Float32)),
		"clamp float32": programOf(dense("rate", program.Float32, clamp)),
		"fill float32":  programOf(dense("odds", program.Float32, fill)),
		"log":           programOf(dense("rate", program.Float32, log.Op{Add: 1})),
		"int_to_float":  programOf(dense("id", program.Int64, toFloat)),
		"label":         programOf(narrow),
		"absent":        programOf(absent, absentList),
		"int32 ids":     programOf(sparse("id", program.Int64, ids), sparse("maybe", program.Int64, ids)),
		"fixed":         programOf(sparse("maybe", program.Int64, fill), sparse("id", program.Int64, hash)),
	}
	programs["int32 ids"].Output.IDs = program.IDs32
	programs["fixed"].Output.Fixed = true

	generated := sparse("maybe", program.Int64, fill, toFloat, buckets, hash)
	generated.Sinks = append(generated.Sinks,
		dense("maybe", program.Int64, fill, clampop.Op{IntHi: math.MaxInt64}, toFloat, log.Op{Add: 1}).Sinks[0])
	programs["rm1"] = programOf(sparse("id", program.Int64, fill, hash), generated, narrow)
	programs["rm5"] = programOf(list("maybe_list", hash), sparse("odds", program.Float32, fill, buckets, hash),
		dense("odds", program.Float32, fill, clampop.Op{FloatHi: math.MaxFloat32}, log.Op{Add: 1}), narrow)
	many := dense("rate", program.Float32)
	for n := range 32 { // two tiles of row_packer, and a column more
		many.Sinks = append(many.Sinks, dense("", 0, clampop.Op{FloatLo: float64(-n), FloatHi: 3}).Sinks[0])
	}
	programs["33 columns"] = programOf(many)
	return programs
}

// TestMiniBatchesAreTheReferences makes mini-batches by simulated units and by the definition: with chains in unit
// lane where it has them, and with every chain in one unit behind the other.
func TestMiniBatchesAreTheReferences(t *testing.T) {
	files := testFiles(t)
	for way, units := range map[string][]string{
		"lane": {"dictionary_gather", "fill_null", "hex_to_int", "hybrid_decoder", "lane", "list_lengths", "plain_decoder",
			"row_packer", "sigrid_hash"},
		"apart": {"bucketize", "clamp", "dictionary_gather", "fill_null", "hex_to_int", "hybrid_decoder", "int_to_float",
			"list_lengths", "log", "plain_decoder", "positive_modulus", "row_packer", "sigrid_hash"},
	} {
		t.Run(way, func(t *testing.T) {
			s := lane.Simulate(t)
			if way == "apart" {
				s.Apart()
			}
			for name, file := range files {
				if way == "apart" && strings.Contains(name, "snappy") {
					continue // firmware unpacks pages, whichever units compute
				}
				for step, p := range testPrograms() {
					t.Run(name+"/"+step, func(t *testing.T) { compareWithReference(t, s, file, p) })
				}
			}
			requireReport(t, s.Report(), units)
		})
	}
}

func compareWithReference(t *testing.T, s *lane.Simulation, file testFile, p *program.Program) {
	require.NoError(t, p.Validate())
	require.NoError(t, lane.Check(p))
	simulated, err := s.NewReader(p, file.file, bytes.NewReader(file.data))
	require.NoError(t, err)
	defined, err := reference.NewParquet(p, file.file, bytes.NewReader(file.data))
	require.NoError(t, err)
	for _, cut := range [][2]int{{0, 600}, {600, 100}, {399, 2}, {0, 1}, {700, 0}} {
		want, err := defined.MiniBatch(int64(cut[0]), cut[1])
		require.NoError(t, err)
		got, err := simulated.MiniBatch(int64(cut[0]), cut[1])
		require.NoError(t, err)
		requireTensors(t, want, got)
	}
	_, err = simulated.MiniBatch(600, 101)
	require.ErrorContains(t, err, "rows 600+101 of 700")
}

// requireReport checks which units a report names, and its numbers.
func requireReport(t *testing.T, r lane.Report, units []string) {
	t.Helper()
	var names []string
	sum := int64(0)
	for _, u := range r.Units {
		names = append(names, u.Unit)
		sum += u.Cycles
		require.Positive(t, u.Cycles, u.Unit)
		require.GreaterOrEqual(t, u.Transfers, u.Sections, u.Unit)
	}
	require.Equal(t, units, names)
	require.Equal(t, sum, r.Cycles)
	require.Less(t, r.Cycles, int64(2_000_000))
	require.GreaterOrEqual(t, len(r.Firmware), 4)
}

func requireTensors(t *testing.T, want *reference.Tensors, got *lane.Tensors) {
	t.Helper()
	require.Equal(t, want.Rows, got.Rows)
	require.Equal(t, bitsOf(want.Label), bitsOf(got.Label), "label")
	require.Equal(t, bitsOf(want.Dense), bitsOf(got.Dense), "dense")
	require.Equal(t, slices.Concat(want.Lengths), slices.Concat(got.Lengths), "lengths")
	require.Equal(t, slices.Concat(want.Values), slices.Concat(got.Values), "values")
}

func bitsOf(values []float32) []uint32 {
	b := make([]uint32, len(values))
	for i, v := range values {
		b[i] = math.Float32bits(v)
	}
	return b
}

// TestStepsThatNoUnitHas checks that a program is refused by the name of the step, and passes without it.
func TestStepsThatNoUnitHas(t *testing.T) {
	for want, spoil := range map[string]func(p *program.Program){
		"zero_extend": func(p *program.Program) { p.Columns[0].Sinks[0].Ops[0] = zeroextend.Op{} },
		"firstx": func(p *program.Program) {
			p.Columns[0].List, p.Columns[0].Sinks[0].Ops[0] = true, firstx.Op{N: 2}
		},
		"bucketize of int64": func(p *program.Program) {
			p.Columns[0].Sinks[0].Ops[0] = &bucketize.Op{BordersInt: []int64{1}}
		},
		"side left": func(p *program.Program) {
			p.Columns[0].Kind = program.Float32
			p.Columns[0].Sinks[0].Ops[0] = &bucketize.Op{Borders32: []float32{1}, Side: bucketize.Right}
		},
		"nan torcharrow": func(p *program.Program) {
			p.Columns[0].Kind = program.Float32
			p.Columns[0].Sinks[0].Ops[0] = &bucketize.Op{Borders32: []float32{1}, NaN: bucketize.NaNError}
		},
		"divides by 1 to 4294967295": func(p *program.Program) {
			p.Columns[0].Sinks[0].Ops[0] = sigridhash.Op{Max: 1 << 32}
		},
		"convert of float64": func(p *program.Program) {
			p.Columns = append(p.Columns, dense("wide", program.Float64, toFloat))
			p.Output.Dense = 1
		},
		"clamp of float64": func(p *program.Program) {
			p.Columns = append(p.Columns, dense("wide", program.Float64, clampop.Op{FloatHi: 1}, toFloat))
			p.Output.Dense = 1
		},
		"bfloat16": func(p *program.Program) {
			p.Columns = append(p.Columns, dense("rate", program.Float32))
			p.Output.Dense, p.Output.DenseType = 1, program.DenseBFloat16
		},
	} {
		p := programOf(sparse("id", program.Int64, hash))
		require.NoError(t, lane.Check(p))
		spoil(p)
		require.NoError(t, p.Validate(), want)
		err := lane.Check(p)
		require.ErrorIs(t, err, rtl.ErrNotInRTL, want)
		require.ErrorContains(t, err, want)
	}
	require.ErrorIs(t, lane.Check(&program.Program{}), program.ErrInvalid)
}

// TestColumnsThatNoUnitDecodes checks files: an encoding, a type and a size that the units do not have.
func TestColumnsThatNoUnitDecodes(t *testing.T) {
	s := lane.Simulate(t)
	rows := drawRows(40)
	many := make([]row, 16385)
	for i := range many {
		many[i].ID = int64(i)
	}
	dictionary := pq.DefaultEncodingFor(pq.Int64, &pq.RLEDictionary)
	p := programOf(sparse("id", program.Int64, hash))
	for want, c := range map[string]struct {
		file    testFile
		program *program.Program
	}{
		"DELTA_BINARY_PACKED": {writeFile(t, rows, pq.DefaultEncodingFor(pq.Int64, &pq.DeltaBinaryPacked)), p},
		"dictionaries of up to 16384 values, and not of 16385": {writeFile(t, many, dictionary), p},
		"BOOLEAN": {writeFile(t, rows), programOf(sparse("flag", program.Int64))},
	} {
		r, err := s.NewReader(c.program, c.file.file, bytes.NewReader(c.file.data))
		if err == nil {
			_, err = r.MiniBatch(0, 40)
		}
		require.ErrorIs(t, err, rtl.ErrNotInRTL, want)
		require.ErrorContains(t, err, want)
	}
	file := writeFile(t, many[:16384], dictionary)
	r, err := s.NewReader(p, file.file, bytes.NewReader(file.data))
	require.NoError(t, err)
	got, err := r.MiniBatch(0, 16384)
	require.NoError(t, err)
	require.Len(t, got.Values, 16384)
}

// TestDataThatIsRefused checks that what the reference refuses is refused, and that a program that is nearly the same
// passes.
func TestDataThatIsRefused(t *testing.T) {
	s := lane.Simulate(t)
	rows := drawRows(20)
	rows[7].Token = "12x"
	rows[3].Maybe, rows[3].Odds = nil, nil
	for i := range rows {
		rows[i].ID = math.MinInt32 + int64(i)
	}
	rows[5].ID = math.MaxInt32 + 1
	file := writeFile(t, rows)
	narrowIDs := programOf(sparse("id", program.Int64))
	narrowIDs.Output.IDs = program.IDs32
	fixed := programOf(sparse("maybe", program.Int64))
	fixed.Output.Fixed = true
	for want, p := range map[string]*program.Program{
		"token \"12x\"":           programOf(sparse("token", program.Bytes, hextoint.Op{})),
		"a null reaches dense":    programOf(dense("odds", program.Float32)),
		"id 2147483648":           narrowIDs,
		"a length of 0":           fixed,
		"no column \"elsewhere\"": programOf(sparse("elsewhere", program.Int64)),
	} {
		defined, err := reference.NewParquet(p, file.file, bytes.NewReader(file.data))
		if err == nil {
			_, err = defined.MiniBatch(0, 20)
		}
		require.Error(t, err, want)
		r, err := s.NewReader(p, file.file, bytes.NewReader(file.data))
		if err == nil {
			_, err = r.MiniBatch(0, 20)
			require.ErrorIs(t, err, lane.ErrData)
		}
		require.ErrorContains(t, err, want)
	}
	r, err := s.NewReader(fixed, file.file, bytes.NewReader(file.data))
	require.NoError(t, err)
	_, err = r.MiniBatch(3, 1)
	require.ErrorIs(t, err, lane.ErrData)
}

// TestWhatASimulationSays checks that a simulator is announced when it is made, and not when it is found.
func TestWhatASimulationSays(t *testing.T) {
	lane.Simulate(t)
	folder := t.TempDir()
	file := writeFile(t, drawRows(8))
	p := programOf(sparse("token", program.Bytes, hextoint.Op{}))
	for turn, want := range [][]string{{"hex_to_int", "list_lengths"}, nil} {
		var made []string
		s, err := lane.New(t.Context(), lane.Options{Folder: folder,
			Building: func(unit string) { made = append(made, unit) }})
		require.NoError(t, err)
		r, err := s.NewReader(p, file.file, bytes.NewReader(file.data))
		require.NoError(t, err)
		_, err = r.MiniBatch(0, 8)
		require.NoError(t, err)
		slices.Sort(made)
		require.Equal(t, want, made, "turn %d", turn)
		require.NoError(t, s.Close())
	}
}

// TestWithoutTools checks that the error says what to install.
func TestWithoutTools(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := lane.New(t.Context(), lane.Options{})
	require.ErrorIs(t, err, cosim.ErrTools)
	require.ErrorContains(t, err, "install Debian's packages verilator, g++ and make")
}
