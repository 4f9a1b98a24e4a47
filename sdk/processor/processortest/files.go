package processortest

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/cartesian"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/computescore"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/enumerate"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/hashbucket"
	"github.com/millrace/millrace/fpga/operator/hashcross"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/ngram"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/tensor"
)

// sample is a row of the generated files: required and optional scalars, with and without a dictionary, and lists.
type sample struct {
	Label int32    `parquet:"label"`
	Int0  *int32   `parquet:"int_0,optional"`
	Int1  float32  `parquet:"int_1"`
	Cat0  *int64   `parquet:"cat_0,optional,dict"`
	Cat1  int64    `parquet:"cat_1"`
	List0 []int64  `parquet:"list_0,list"`
	List1 []int64  `parquet:"list_1,list,dict"`
	Extra []string `parquet:"extra,list"` // a column that no pipeline reads

	Floats map[int32]float32           `parquet:"floats"`
	Lists  map[int32][]int64           `parquet:"lists"`
	Scored map[int64]map[int64]float32 `parquet:"scored"`
}

// Layout gives the rows of a generated Parquet file, how they are cut into row groups and pages, and how these are
// compressed.
type Layout struct {
	Rows    int
	Group   int // rows of a row group
	Page    int // bytes after which a page ends
	Codec   compress.Codec
	Version int // The version of data pages; 0 is 1.
	Seed    uint64
}

func samples(l Layout) []sample {
	rng := rand.New(rand.NewPCG(l.Seed, 7))
	rows := make([]sample, l.Rows)
	list := func(longest int, ids int64) []int64 {
		v := make([]int64, rng.IntN(longest+1))
		for i := range v {
			v[i] = rng.Int64N(ids)
		}
		return v
	}
	for i := range rows {
		r := &rows[i]
		r.Label, r.Int1, r.Cat1 = int32(rng.IntN(2)), rng.Float32()*1000, rng.Int64N(1<<31)
		if rng.IntN(4) > 0 {
			v := int32(rng.IntN(5000) - 100)
			r.Int0 = &v
		}
		if rng.IntN(5) > 0 {
			v := rng.Int64N(300)
			r.Cat0 = &v
		}
		r.List0, r.List1 = list(12, 1<<40), list(6, 500)
		r.Extra = []string{"not", "needed"}
		r.Floats, r.Lists, r.Scored = map[int32]float32{}, map[int32][]int64{}, map[int64]map[int64]float32{}
		for range rng.IntN(5) {
			r.Floats[rng.Int32N(6)] = rng.Float32() * 100
			r.Lists[rng.Int32N(6)] = list(9, 1<<40)
			scored := map[int64]float32{}
			for _, id := range list(5, 1000) {
				scored[id] = rng.Float32()
			}
			r.Scored[rng.Int64N(6)] = scored
		}
	}
	return rows
}

// WriteParquet makes a Parquet file of the layout.
func WriteParquet(t testing.TB, l Layout) []byte {
	var buf bytes.Buffer
	if l.Codec == nil {
		l.Codec = &pq.Uncompressed
	}
	w := pq.NewGenericWriter[sample](&buf, pq.MaxRowsPerRowGroup(int64(max(l.Group, 1))),
		pq.PageBufferSize(max(l.Page, 64)), pq.DataPageVersion(max(l.Version, 1)), pq.Compression(l.Codec))
	for part := range slices.Chunk(samples(l), 97) {
		_, err := w.Write(part)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}

// Jagged returns a program over generated files with lists, null scalars, a generated key, and a column that feeds
// two keys.
func Jagged() (*program.Program, *tensor.Schema) {
	p := &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "cat_0", Kind: program.Int64, Sinks: []program.Sink{
				{To: program.ToSparse, Index: 0, Ops: []program.Op{sigridhash.Op{Salt: 0, Max: 1000}}},
				{To: program.ToSparse, Index: 1, Ops: []program.Op{fillnull.Op{Int: 7}, positivemodulus.Op{M: 13}}}}},
			{Name: "list_0", Kind: program.Int64, List: true, Sinks: []program.Sink{
				{To: program.ToSparse, Index: 2, Ops: []program.Op{sigridhash.Op{Salt: 3, Max: 1 << 20}}}}},
			{Name: "list_1", Kind: program.Int64, List: true, Sinks: []program.Sink{
				{To: program.ToSparse, Index: 3, Ops: []program.Op{firstx.Op{N: 4}}}}},
			{Name: "int_1", Kind: program.Float32, Sinks: []program.Sink{
				{To: program.ToSparse, Index: 4, Ops: []program.Op{&bucketize.Op{Borders32: []float32{1, 10, 100, 500}}}},
				{To: program.ToDense, Index: 1}}},
			{Name: "int_0", Kind: program.Int64, Sinks: []program.Sink{
				{To: program.ToDense, Index: 0, Ops: []program.Op{fillnull.Op{}, clamp.Op{IntLo: 0, IntHi: 1 << 40},
					convert.Op{To: program.Float32}, log.Op{Add: 1}}}}},
			{Name: "label", Kind: program.Int64, Sinks: []program.Sink{
				{To: program.ToLabel, Ops: []program.Op{convert.Op{To: program.Float32}}}}},
		},
		Output: program.Output{Label: true, Dense: 2, Keys: 5},
	}
	s := &tensor.Schema{Label: true, Dense: []string{"int_0", "int_1"}, IDs: tensor.Int64, Keys: []tensor.Key{
		{Name: "cat_0", List: true}, {Name: "cat_0_mod", List: true}, {Name: "list_0", List: true},
		{Name: "list_1", List: true}, {Name: "bucket", List: true}}}
	return p, s
}

// Fixed returns a program over generated files in which every length is 1.
func Fixed() (*program.Program, *tensor.Schema) {
	p := &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "cat_0", Kind: program.Int64, Sinks: []program.Sink{
				{To: program.ToSparse, Index: 0, Ops: []program.Op{fillnull.Op{}, sigridhash.Op{Max: 1000}}}}},
			{Name: "cat_1", Kind: program.Int64, Sinks: []program.Sink{
				{To: program.ToSparse, Index: 1, Ops: []program.Op{sigridhash.Op{Salt: 5, Max: 500000}}},
				{To: program.ToSparse, Index: 2, Ops: []program.Op{positivemodulus.Op{M: 97}}}}},
			{Name: "int_1", Kind: program.Float32, Sinks: []program.Sink{{To: program.ToDense, Index: 0}}},
			{Name: "int_0", Kind: program.Int64, Sinks: []program.Sink{
				{To: program.ToDense, Index: 1, Ops: []program.Op{fillnull.Op{}, convert.Op{To: program.Float32}}}}},
		},
		Output: program.Output{Dense: 2, Keys: 3, IDs: program.IDs32, Fixed: true},
	}
	s := &tensor.Schema{Dense: []string{"int_1", "int_0"}, IDs: tensor.Int32, Keys: []tensor.Key{
		{Name: "cat_0"}, {Name: "cat_1"}, {Name: "cat_1_mod"}}}
	return p, s
}

// Mapped returns a program over the maps of generated files, with a scalar and a list between the maps.
func Mapped() (*program.Program, *tensor.Schema) {
	hash := []program.Op{sigridhash.Op{Max: 1 << 20}}
	part := func(name string, kind program.Kind, list bool, p program.Part) program.Column {
		return program.Column{Name: name, Kind: kind, List: list, Part: p}
	}
	scored := part("scored.key_value.value.key_value.key", program.Int64, true, program.MapValues)
	scored.Picks = []program.Pick{{Key: 1, Scored: true}, {Key: 2}, {Key: 9, Scored: true}, {Key: 3, Scored: true}}
	lists := part("lists.key_value.value", program.Int64, true, program.MapValues)
	lists.Picks = []program.Pick{{Key: 5}, {Key: 1}}
	floats := part("floats.key_value.value", program.Float32, false, program.MapValues)
	floats.Picks = []program.Pick{{Key: 2}, {Key: 2}, {Key: 4}}
	s := &tensor.Schema{Dense: []string{"f2", "f4"}, IDs: tensor.Int64, Weights: true}
	sparse := func(name string, ops ...program.Op) program.Sink {
		s.Keys = append(s.Keys, tensor.Key{Name: name, List: true})
		return program.Sink{To: program.ToSparse, Index: uint32(len(s.Keys) - 1), Ops: ops}
	}
	scored.Sinks = []program.Sink{
		sparse("s1", hash...), sparse("s2", firstx.Op{N: 2}), sparse("s9"), sparse("s3", firstx.Op{N: 1}),
	}
	cat := program.Column{Name: "cat_0", Kind: program.Int64, Sinks: []program.Sink{sparse("cat_0", hash...)}}
	list := program.Column{
		Name: "list_1", Kind: program.Int64, List: true, Sinks: []program.Sink{sparse("list_1", hash...)},
	}
	lists.Sinks = []program.Sink{sparse("l5", hash...), sparse("l1", positivemodulus.Op{M: 5})}
	floats.Sinks = []program.Sink{
		sparse("b2", &bucketize.Op{Borders32: []float32{1, 10}}),
		{To: program.ToDense, Ops: []program.Op{fillnull.Op{Float: 1}}},
		{To: program.ToDense, Index: 1, Ops: []program.Op{fillnull.Op{}, log.Op{Add: 1}}},
	}
	return &program.Program{
		Source: program.Parquet, Output: program.Output{Dense: 2, Keys: uint32(len(s.Keys)), Weights: true},
		Columns: []program.Column{
			part("scored.key_value.key", program.Int64, false, program.MapKeys), scored,
			part("scored.key_value.value.key_value.value", program.Float32, true, program.MapScores),
			cat, list,
			part("lists.key_value.key", program.Int64, false, program.MapKeys), lists,
			part("floats.key_value.key", program.Int64, false, program.MapKeys), floats,
		},
	}, s
}

// Crossed is a program over generated files with two graphs: one of lists and scalars, a step of which is taken twice,
// and one of scalars that feeds dense columns.
func Crossed() (*program.Program, *tensor.Schema) {
	s := &tensor.Schema{Dense: []string{"cross", "int_1"}, IDs: tensor.Int64, Weights: true}
	key := func(name string, value int, ops ...program.Op) program.GraphSink {
		s.Keys = append(s.Keys, tensor.Key{Name: name, List: true})
		return program.GraphSink{Value: uint32(value), Sink: program.Sink{To: program.ToSparse,
			Index: uint32(len(s.Keys) - 1), Ops: ops}}
	}
	column := func(name string, kind program.Kind, list bool, part program.Part) program.Column {
		return program.Column{Name: name, Kind: kind, List: list, Part: part}
	}
	step := func(o program.Combiner, a, b uint32, ops ...program.Op) program.Step {
		return program.Step{Inputs: []uint32{a, b}, Combine: o, Ops: ops}
	}
	plain := program.Column{Name: "cat_1", Kind: program.Int64, Sinks: []program.Sink{
		{To: program.ToSparse, Ops: []program.Op{sigridhash.Op{Max: 100}}}}}
	s.Keys = append(s.Keys, tensor.Key{Name: "cat_1", List: true})
	lists := program.Graph{
		Steps: []program.Step{
			step(cartesian.Op{MaxLength: 6}, 0, 1),
			step(cartesian.Op{MaxLength: 8}, 3, 2, sigridhash.Op{Max: 1 << 30}),
			{Inputs: []uint32{0}, Ops: []program.Op{ngram.Op{N: 2}}},
			step(hashcross.Op{Buckets: 1000}, 2, 2),
			step(computescore.Op{Function: computescore.Jaccard}, 0, 1, fillnull.Op{},
				&bucketize.Op{Borders32: []float32{0.1, 0.5}}),
			{Inputs: []uint32{1}, Combine: enumerate.Op{}, Ops: []program.Op{firstx.Op{N: 5}}},
		},
		Sinks: []program.GraphSink{
			key("lists", 3, sigridhash.Op{Max: 1 << 20}), key("with cat_0", 4), key("some", 4, firstx.Op{N: 2}),
			key("windows", 5, positivemodulus.Op{M: 1000}), key("list_1", 1),
			key("bucket", 6, hashbucket.Op{Buckets: 77}), key("alike", 7),
			key("places", 8, firstx.Op{N: 3}),
		},
	}
	lists.Sinks[len(lists.Sinks)-1].Scored = true
	scalars := program.Graph{
		Steps: []program.Step{step(cartesian.Op{MaxLength: 1}, 0, 1)},
		Sinks: []program.GraphSink{{Value: 2, Sink: program.Sink{To: program.ToDense, Ops: []program.Op{
			fillnull.Op{Int: 3}, convert.Op{To: program.Float32}, log.Op{Add: 1}}}}},
	}
	return &program.Program{
		Source: program.Parquet, Output: program.Output{Dense: 2, Keys: uint32(len(s.Keys)), Weights: true},
		Columns: []program.Column{
			plain, column("list_0", program.Int64, true, program.GraphFirst),
			column("list_1", program.Int64, true, program.GraphNext), column("cat_0", program.Int64, false, program.GraphNext),
			column("cat_0", program.Int64, false, program.GraphFirst), column("cat_1", program.Int64, false, program.GraphNext),
			{Name: "int_1", Kind: program.Float32, Sinks: []program.Sink{{To: program.ToDense, Index: 1}}},
		},
		Graphs: []program.Graph{lists, scalars},
	}, s
}

// Lacking returns a program over generated files that lacks columns: a map, a list, scalars that feed a key and a dense
// column, and a column of a graph. The columns between these are there.
func Lacking() (*program.Program, *tensor.Schema) {
	s := &tensor.Schema{Dense: []string{"int_1", "absent rate"}, IDs: tensor.Int64}
	sparse := func(name string, ops ...program.Op) []program.Sink {
		s.Keys = append(s.Keys, tensor.Key{Name: name, List: true})
		return []program.Sink{{To: program.ToSparse, Index: uint32(len(s.Keys) - 1), Ops: ops}}
	}
	p := &program.Program{Source: program.Parquet}
	add := func(name string, kind program.Kind, list bool, part program.Part, sinks []program.Sink) *program.Column {
		p.Columns = append(p.Columns, program.Column{Name: name, Kind: kind, List: list, Part: part, Sinks: sinks,
			Absent: part != program.GraphNext})
		return &p.Columns[len(p.Columns)-1]
	}
	add("absent list", program.Int64, true, program.NoPart, sparse("absent list"))
	add("list_0", program.Int64, true, program.NoPart, sparse("list_0", firstx.Op{N: 3}))
	add("absent.key", program.Int64, false, program.MapKeys, nil)
	values := add("absent.value", program.Int64, true, program.MapValues, append(sparse("absent 1"),
		sparse("absent 2", ngram.Op{N: 2})...))
	values.Picks = []program.Pick{{Key: 1}, {Key: 2}}
	add("absent id", program.Int64, false, program.NoPart, sparse("absent id", fillnull.Op{Int: 4}))
	add("absent other", program.Int64, false, program.GraphFirst, nil)
	add("list_1", program.Int64, true, program.GraphNext, nil)
	add("cat_1", program.Int64, false, program.GraphNext, nil)
	crossed := sparse("crossed")[0]
	p.Graphs = []program.Graph{{
		Steps: []program.Step{
			{Inputs: []uint32{0}, Ops: []program.Op{fillnull.Op{Int: 2}}},
			{Inputs: []uint32{3, 1}, Combine: cartesian.Op{MaxLength: 9}},
			{Inputs: []uint32{4, 2}, Combine: cartesian.Op{MaxLength: 9}},
		},
		Sinks: []program.GraphSink{{Value: 5, Sink: crossed}},
	}}
	add("cat_0", program.Int64, false, program.NoPart, sparse("cat_0"))
	add("int_1", program.Float32, false, program.NoPart, []program.Sink{{To: program.ToDense}})
	fill := []program.Op{fillnull.Op{Float: 0.25}, log.Op{Add: 1}}
	add("absent rate", program.Float32, false, program.NoPart, []program.Sink{{To: program.ToDense, Index: 1, Ops: fill}})
	p.Output = program.Output{Dense: 2, Keys: uint32(len(s.Keys))}
	return p, s
}

// Programs returns the programs over generated files by their names.
func Programs() map[string]func() (*program.Program, *tensor.Schema) {
	return map[string]func() (*program.Program, *tensor.Schema){"jagged": Jagged, "fixed": Fixed, "mapped": Mapped,
		"crossed": Crossed, "lacking": Lacking}
}
