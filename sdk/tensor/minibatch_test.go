package tensor

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// schemas returns one schema of each kind.
func schemas() map[string]*Schema {
	keys := []Key{{Name: "cat_0", NumEmbeddings: 500_000}, {Name: "bucket_\"é\\\n", NumEmbeddings: 1 << 40}}
	jagged := []Key{{Name: "a", NumEmbeddings: 100, List: true}, {Name: "b"}, {Name: "c", List: true}}
	return map[string]*Schema{
		"fixed int32":     {Label: true, Dense: []string{"int_0", "int_1", "int_2"}, Keys: keys, IDs: Int32},
		"fixed int64":     {Label: true, Dense: []string{"int_0"}, Keys: keys, IDs: Int64},
		"lists int64":     {Label: true, Dense: []string{"int_0"}, Keys: jagged, IDs: Int64},
		"lists int32":     {Dense: []string{"int_0"}, Keys: jagged, IDs: Int32},
		"lists weighted":  {Label: true, Keys: jagged, IDs: Int64, Weights: true},
		"fixed weighted":  {Keys: keys, IDs: Int32, Weights: true},
		"label only":      {Label: true},
		"dense only":      {Dense: []string{"x", "y"}},
		"no dense, fixed": {Label: true, Keys: keys, IDs: Int32},
		"bfloat16 lists": {Label: true, Dense: []string{"x", "y", "z"}, DenseType: BFloat16, Keys: jagged, IDs: Int32,
			Weights: true},
		"bfloat16 fixed": {Label: true, Dense: []string{"x"}, DenseType: BFloat16, Keys: keys, IDs: Int64},
		"bfloat16 only":  {Dense: []string{"x"}, DenseType: BFloat16},
	}
}

// random returns a valid mini-batch of the schema.
func random(t testing.TB, s *Schema, rows int, seed uint64) *MiniBatch {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	lengths := make([]int32, len(s.Keys)*rows)
	values := 0
	for i := range lengths {
		lengths[i] = 1
		if s.Keys[i/rows].List {
			lengths[i] = r.Int32N(4)
		}
		values += int(lengths[i])
	}
	m, err := Make(s, rows, values)
	require.NoError(t, err)
	m.Name = Name{Job: [32]byte{1, 31: 2}, Epoch: 3, Number: seed}
	copy(m.Lengths, lengths)
	for i := range m.Label {
		m.Label[i] = float32(r.IntN(2))
	}
	for i := range m.Dense {
		m.Dense[i] = math.Float32frombits(r.Uint32())
	}
	for i := range m.Dense16 {
		m.Dense16[i] = uint16(r.Uint32())
	}
	for i := range m.Values32 {
		m.Values32[i] = r.Int32N(100)
	}
	for i := range m.Values64 {
		m.Values64[i] = r.Int64N(100)
	}
	for i := range m.Weights {
		m.Weights[i] = r.Float32()
	}
	require.NoError(t, m.Validate())
	require.NoError(t, m.ValidateIDs())
	return m
}

func TestReleaseIsCalledOnce(t *testing.T) {
	released := 0
	m := New(&Schema{Label: true}, 2, func() { released++ })
	assert.True(t, m.Lent())
	m.Retain()
	m.Retain()
	m.Release()
	m.Release()
	assert.Zero(t, released)
	m.Release()
	assert.Equal(t, 1, released)
	if debug {
		assert.Panics(t, m.Release)
	} else {
		m.Release()
	}
	assert.Equal(t, 1, released)
}

func TestRecycledMemoryIsNotLent(t *testing.T) {
	recycled := 0
	m := NewRecycled(&Schema{Label: true}, 2, func() { recycled++ })
	assert.False(t, m.Lent())
	m.Retain()
	m.Release()
	assert.Zero(t, recycled)
	m.Release()
	assert.Equal(t, 1, recycled)
}

func TestOwnCopiesWhatIsLent(t *testing.T) {
	schema := &Schema{Label: true}
	own, released := New(schema, 2, nil), 0
	require.Same(t, own, own.Own())
	lent := New(schema, 2, func() { released++ })
	lent.Label = []float32{1, 2}
	copied := lent.Own()
	require.Equal(t, 1, released)
	require.False(t, copied.Lent())
	require.Equal(t, []float32{1, 2}, copied.Label)
}

// TestOnRelease: what is added is done once, after the last release and after what was there before. Memory is lent or
// not as before.
func TestOnRelease(t *testing.T) {
	for _, m := range []*MiniBatch{New(&Schema{}, 1, nil), New(&Schema{}, 1, func() {})} {
		lent := m.Lent()
		var done []int
		for i := range 3 {
			m.OnRelease(func() { done = append(done, i) })
		}
		assert.Equal(t, lent, m.Lent())
		m.Retain()
		m.Release()
		assert.Empty(t, done)
		m.Release()
		assert.Equal(t, []int{0, 1, 2}, done)
	}
}

func TestReleaseFromManyGoroutines(t *testing.T) {
	released := 0
	m := New(&Schema{Label: true}, 0, func() { released++ })
	var wg sync.WaitGroup
	for range 50 {
		m.Retain()
		wg.Go(m.Release)
	}
	m.Release()
	wg.Wait()
	assert.Equal(t, 1, released)
}

func TestReleaseTakesTensorsAwayInDebugBuilds(t *testing.T) {
	m := random(t, schemas()["fixed int32"], 3, 1)
	m.Release()
	assert.Equal(t, debug, m.Dense == nil)
}

// hasDense returns a function that reports whether a mini-batch has dense values of a type.
func hasDense(kind DType) func(*MiniBatch) bool {
	return func(m *MiniBatch) bool { return len(m.Schema.Dense) > 0 && m.Schema.DenseDType() == kind }
}

// hasValues returns a function that reports whether a mini-batch has ids of a type.
func hasValues(kind DType) func(*MiniBatch) bool {
	return func(m *MiniBatch) bool { return len(m.Schema.Keys) > 0 && m.Schema.IDs == kind }
}

// TestCloneLendsNothing: a clone is equal, lends nothing, and shares no tensor: what changes in a clone differs from
// the original, and the original stays as it was.
func TestCloneLendsNothing(t *testing.T) {
	changes := map[string]struct {
		has    func(m *MiniBatch) bool // whether a mini-batch has what changes; nil: every one
		change func(c *MiniBatch)
	}{
		"name":     {nil, func(c *MiniBatch) { c.Name.Number++ }},
		"place":    {nil, func(c *MiniBatch) { c.Fragment.Index++ }},
		"whole":    {nil, func(c *MiniBatch) { c.Fragment = Fragment{} }},
		"rows":     {nil, func(c *MiniBatch) { c.Rows++ }},
		"label":    {func(m *MiniBatch) bool { return m.Schema.Label }, func(c *MiniBatch) { c.Label[0]++ }},
		"labels":   {nil, func(c *MiniBatch) { c.Label = append(c.Label, 1) }},
		"dense":    {hasDense(Float32), func(c *MiniBatch) { c.Dense[0] = -c.Dense[0] }},
		"bfloat16": {hasDense(BFloat16), func(c *MiniBatch) { c.Dense16[0]++ }},
		"int32":    {hasValues(Int32), func(c *MiniBatch) { c.Values32[0]++ }},
		"int64":    {hasValues(Int64), func(c *MiniBatch) { c.Values64[0]++ }},
		"lengths":  {func(m *MiniBatch) bool { return !m.Schema.Fixed() }, func(c *MiniBatch) { c.Lengths[0]++ }},
		"weights":  {func(m *MiniBatch) bool { return m.Schema.Weights }, func(c *MiniBatch) { c.Weights[0]++ }},
		"schema":   {nil, func(c *MiniBatch) { o := *c.Schema; o.Label = !o.Label; c.Schema = &o }},
	}
	changed := map[string]bool{}
	for name, s := range schemas() {
		t.Run(name, func(t *testing.T) {
			m, same := random(t, s, 5, 1), random(t, s, 5, 1)
			m.Fragment, same.Fragment = Fragment{Index: 2, Of: 8}, Fragment{Index: 2, Of: 8}
			if hasDense(Float32)(m) {
				m.Dense[0], same.Dense[0] = 0, 0 // whose sign changes
			}
			c := m.Clone()
			assert.False(t, c.Lent())
			assert.Empty(t, Diff(m, c))
			assert.Equal(t, m.Bytes(), c.Bytes())
			for name, test := range changes {
				if test.has != nil && !test.has(m) {
					continue
				}
				changed[name] = true
				c = m.Clone()
				test.change(c)
				assert.False(t, m.Equal(c), name)
				assert.NotEmpty(t, Diff(c, m), name)
				assert.Empty(t, Diff(same, m), "%s: the original has changed", name)
			}
		})
	}
	assert.Len(t, changed, len(changes), "every change is made in some schema")
	var none *MiniBatch
	assert.True(t, none.Equal(nil))
	assert.False(t, none.Equal(New(&Schema{}, 0, nil)))
}

func TestEqualComparesBits(t *testing.T) {
	s := &Schema{Label: true}
	a, b := New(s, 1, nil), New(s, 1, nil)
	nan := math.Float32frombits(0x7fc00001)
	a.Label, b.Label = []float32{nan}, []float32{nan}
	assert.True(t, a.Equal(b))
	b.Label[0] = math.Float32frombits(0x7fc00002)
	assert.False(t, a.Equal(b))
	a.Label[0], b.Label[0] = 0, float32(math.Copysign(0, -1))
	assert.Equal(t, "label[0]: 0, -0", Diff(a, b))
}

func TestSchemaRefuses(t *testing.T) {
	key := []Key{{Name: "a"}}
	for name, s := range map[string]*Schema{
		"none":                nil,
		"empty":               {},
		"ids of no type":      {Keys: key},
		"ids float32":         {Keys: key, IDs: Float32},
		"weights, no keys":    {Label: true, Weights: true},
		"a dense name twice":  {Dense: []string{"a", "a"}},
		"a key twice":         {Keys: []Key{{Name: "a"}, {Name: "a"}}, IDs: Int32},
		"no name":             {Dense: []string{""}},
		"no key name":         {Keys: []Key{{}}, IDs: Int32},
		"a name not UTF-8":    {Dense: []string{"\xff"}},
		"a long name":         {Dense: []string{string(make([]byte, MaxNameBytes+1))}},
		"dense int32":         {Dense: []string{"a"}, DenseType: Int32},
		"dense of no type":    {Dense: []string{"a"}, DenseType: 9},
		"negative embeddings": {Keys: []Key{{Name: "a", NumEmbeddings: -1}}, IDs: Int32},
		"too many dense":      {Dense: make([]string, MaxDense+1)},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, s.Validate(), ErrShape) })
	}
	require.NoError(t, (&Schema{Dense: []string{"a"}, Keys: key, IDs: Int32}).Validate(),
		"a dense feature and a key may share a name")
}

func TestMiniBatchValidate(t *testing.T) {
	for name, c := range map[string]struct {
		schema string
		change func(m *MiniBatch)
		says   string
	}{
		"label short": {"fixed int32", func(m *MiniBatch) { m.Label = m.Label[1:] },
			"label has 4 elements, want 5"},
		"dense long": {"fixed int32", func(m *MiniBatch) { m.Dense = append(m.Dense, 1) }, "dense has 16"},
		"dense of both types": {"bfloat16 fixed", func(m *MiniBatch) { m.Dense = make([]float32, 5) },
			"float32 dense has 5 elements, want 0"},
		"bfloat16 short": {"bfloat16 fixed", func(m *MiniBatch) { m.Dense16 = m.Dense16[1:] },
			"bfloat16 dense has 4 elements, want 5"},
		"values short":         {"fixed int32", func(m *MiniBatch) { m.Values32 = m.Values32[1:] }, "want 10"},
		"values of both types": {"fixed int32", func(m *MiniBatch) { m.Values64 = make([]int64, 10) }, "int64"},
		"lengths where fixed":  {"fixed int32", func(m *MiniBatch) { m.Lengths = make([]int32, 10) }, "kjt.lengths"},
		"lengths missing":      {"lists int64", func(m *MiniBatch) { m.Lengths = nil }, "want 15"},
		"a length negative":    {"lists int64", func(m *MiniBatch) { m.Lengths[12] = -1 }, `key "c", row 2 is -1`},
		"a scalar's length":    {"lists int64", func(m *MiniBatch) { m.Lengths[5] = 2 }, `one id a row`},
		"the sum of lengths":   {"lists int64", func(m *MiniBatch) { m.Lengths[0]++ }, "sum to"},
		"weights short":        {"lists weighted", func(m *MiniBatch) { m.Weights = m.Weights[1:] }, "kjt.weights"},
		"weights unasked": {"lists int64", func(m *MiniBatch) { m.Weights = make([]float32, m.Values()) },
			"kjt.weights"},
		"rows negative":       {"lists int64", func(m *MiniBatch) { m.Rows = -1 }, "-1 rows"},
		"values without keys": {"label only", func(m *MiniBatch) { m.Values64 = make([]int64, 1) }, "int64"},
		"no schema":           {"label only", func(m *MiniBatch) { m.Schema = nil }, "no schema"},
	} {
		t.Run(name, func(t *testing.T) {
			m := random(t, schemas()[c.schema], 5, 1)
			c.change(m)
			err := m.Validate()
			require.ErrorIs(t, err, ErrShape)
			assert.ErrorContains(t, err, c.says)
		})
	}
}

func TestValidateIDs(t *testing.T) {
	for _, name := range []string{"lists int64", "lists int32"} {
		m := random(t, schemas()[name], 50, 1)
		o := m.OffsetPerKey()
		set := func(i int64, id int64) {
			if m.Schema.IDs == Int32 {
				m.Values32[i] = int32(id)
			} else {
				m.Values64[i] = id
			}
		}
		set(o[1], -1) // key b is not bounded
		require.NoError(t, m.ValidateIDs())
		set(o[1]-1, 99)
		require.NoError(t, m.ValidateIDs())
		set(o[1]-1, 100)
		require.ErrorIs(t, m.ValidateIDs(), ErrShape)
		set(o[1]-1, -1)
		require.ErrorIs(t, m.ValidateIDs(), ErrShape)
	}
}

func TestLayoutAligns(t *testing.T) {
	s := &Schema{Label: true, Dense: []string{"x"}, Keys: []Key{{Name: "a", List: true}}, IDs: Int64, Weights: true}
	e, err := Layout(s, 3, 5)
	require.NoError(t, err)
	assert.Equal(t, Extents{Tensors: []Extent{
		{TensorValues, Int64, []int64{5}, 0, 40},
		{TensorDense, Float32, []int64{3, 1}, 64, 12},
		{TensorLengths, Int32, []int64{1, 3}, 128, 12},
		{TensorLabel, Float32, []int64{3}, 192, 12},
		{TensorWeights, Float32, []int64{5}, 256, 20},
	}, Bytes: 276}, e)
	e, err = Packed(s, 3, 5)
	require.NoError(t, err)
	assert.EqualValues(t, 96, e.Bytes)
	label, ok := e.Find(TensorLabel)
	assert.True(t, ok)
	assert.EqualValues(t, 64, label.Offset)
	_, ok = e.Find("x")
	assert.False(t, ok)
}

func TestLayoutRefuses(t *testing.T) {
	fixed := &Schema{Keys: []Key{{Name: "a"}, {Name: "b"}}, IDs: Int32}
	list := &Schema{Keys: []Key{{Name: "a", List: true}}, IDs: Int32}
	for _, c := range []struct {
		s            *Schema
		rows, values int
		ok           bool
	}{
		{fixed, 3, 6, true}, {fixed, 3, 5, false}, {fixed, 3, 7, false}, {fixed, 0, 0, true}, {fixed, -1, -2, false},
		{list, MaxRows, 0, true}, {list, MaxRows + 1, 0, false}, {list, 1, MaxValues, true}, {list, 1, MaxValues + 1,
			false}, {list, 1, -1, false},
		{&Schema{Keys: []Key{{Name: "a"}}}, 1, 1, false},
		{&Schema{Dense: make([]string, MaxDense+1)}, 1, 0, false},
	} {
		_, err := Layout(c.s, c.rows, c.values)
		if c.ok {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrShape)
		}
	}
}

func TestFromMemory(t *testing.T) {
	for name, s := range schemas() {
		t.Run(name, func(t *testing.T) {
			m := random(t, s, 5, 1)
			e, err := Layout(s, m.Rows, m.Values())
			require.NoError(t, err)
			mem := make([]byte, e.Bytes+64)
			for i, v := range m.views(e) {
				copy(mem[e.Tensors[i].Offset:], v)
			}
			released := false
			v, err := FromMemory(s, m.Rows, m.Values(), mem[:e.Bytes], e, func() { released = true })
			require.NoError(t, err)
			v.Name = m.Name
			assert.Empty(t, Diff(m, v))
			v.Release()
			assert.True(t, released)

			last := len(e.Tensors) - 1
			_, err = FromMemory(s, m.Rows, m.Values(), mem[:e.Bytes-1], e, nil)
			require.ErrorIs(t, err, ErrShape)
			for _, change := range []func(*Extent){
				func(x *Extent) { x.Offset = -4 },
				func(x *Extent) { x.Offset = math.MaxInt64 - 4 },
				func(x *Extent) { x.Bytes-- },
				func(x *Extent) { x.Name = "x" },
				func(x *Extent) { x.DType = 0 },
				func(x *Extent) { x.Shape = []int64{1, 2, 3} },
			} {
				bad := Extents{Tensors: append([]Extent(nil), e.Tensors...), Bytes: e.Bytes}
				change(&bad.Tensors[last])
				_, err = FromMemory(s, m.Rows, m.Values(), mem, bad, nil)
				require.ErrorIs(t, err, ErrShape)
			}
			e.Tensors = e.Tensors[:last]
			_, err = FromMemory(s, m.Rows, m.Values(), mem, e, nil)
			require.ErrorIs(t, err, ErrShape)
		})
	}
}

func TestViewsShareMemoryWhereAligned(t *testing.T) {
	v := []int64{1, -2, math.MaxInt64}
	b := Bytes(v)
	require.Len(t, b, 24)
	assert.Equal(t, []byte{1, 0, 0, 0, 0, 0, 0, 0, 0xfe}, b[:9])
	back := View[int64](b)
	assert.Equal(t, v, back)
	v[0] = 7
	if !bigEndian {
		assert.EqualValues(t, 7, back[0])
	}

	odd := make([]byte, 25)
	copy(odd[1:], b)
	copied := View[int64](odd[1:])
	assert.Equal(t, v, copied)
	assert.Nil(t, View[int64](b[:7]))
	assert.Len(t, View[int64](b[:23]), 2)
	assert.Nil(t, Bytes[float32](nil))
	assert.Equal(t, []byte{3, 2, 1, 0, 7, 6, 5, 4}, swapped([]byte{0, 1, 2, 3, 4, 5, 6, 7}, 4))
}

// TestKJTGolden runs the cases of golden/kjt.json. A mini-batch cannot have the offsets of one invalid case, since it
// makes offsets from lengths.
func TestKJTGolden(t *testing.T) {
	raw, err := os.ReadFile("testdata/kjt.json")
	require.NoError(t, err)
	type tensorCase struct {
		Keys         []string
		Values       []string
		Lengths      []int32
		Offsets      []int64
		Stride       int
		OffsetPerKey []int64 `json:"offset_per_key"`
		LengthPerKey []int64 `json:"length_per_key"`
		Weights      []float32
		Why          string
		Invalid      []json.RawMessage
	}
	var doc struct{ Cases []tensorCase }
	require.NoError(t, json.Unmarshal(raw, &doc))
	require.Len(t, doc.Cases, 5)
	build := func(c *tensorCase, rows int) *MiniBatch {
		s := &Schema{IDs: Int64, Weights: c.Weights != nil}
		for _, k := range c.Keys {
			s.Keys = append(s.Keys, Key{Name: k, List: true})
		}
		m := New(s, rows, nil)
		m.Lengths, m.Weights = c.Lengths, c.Weights
		for _, v := range c.Values {
			n, err := strconv.ParseInt(v, 10, 64)
			require.NoError(t, err)
			m.Values64 = append(m.Values64, n)
		}
		return m
	}
	for i, c := range doc.Cases {
		if c.Invalid != nil {
			continue
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			m := build(&c, c.Stride)
			require.NoError(t, m.Validate())
			assert.Equal(t, c.Offsets, m.Offsets(nil))
			assert.Equal(t, c.OffsetPerKey, m.OffsetPerKey())
			for f, n := range c.LengthPerKey {
				assert.Equal(t, n, m.OffsetPerKey()[f+1]-m.OffsetPerKey()[f])
			}
			ones := len(c.Lengths) > 0
			for _, l := range c.Lengths {
				ones = ones && l == 1
			}
			if ones {
				for k := range m.Schema.Keys {
					m.Schema.Keys[k].List = false
				}
				m.Lengths = nil
				require.NoError(t, m.Validate())
				assert.Equal(t, c.Offsets, m.Offsets(nil), "the same without lengths")
				assert.Equal(t, c.OffsetPerKey, m.OffsetPerKey())
			}
		})
	}
	invalid := doc.Cases[4].Invalid
	require.Len(t, invalid, 5)
	refusals := map[string]string{
		"sum(lengths)!=numel(values)": "the lengths sum to 3, there are 1 values",
		"duplicate keys":              `key "a" is named twice`,
		"len(lengths)%len(keys)!=0":   "kjt.lengths has 3 elements, want 4",
		"weights numel!=values numel": "kjt.weights has 1 elements, want 2",
	}
	for _, r := range invalid {
		var c tensorCase
		require.NoError(t, json.Unmarshal(r, &c))
		t.Run(c.Why, func(t *testing.T) {
			if c.Offsets != nil { // a mini-batch holds lengths, and its offsets start at 0
				require.Equal(t, []int64{1, 2}, c.Offsets)
				c.Keys, c.Lengths, c.Values = []string{"a"}, []int32{1}, []string{"1"}
				m := build(&c, 1)
				require.NoError(t, m.Validate())
				assert.Equal(t, []int64{0, 1}, m.Offsets(nil))
				return
			}
			if c.Lengths == nil { // duplicate keys
				c.Lengths = make([]int32, len(c.Keys))
			}
			rows := (len(c.Lengths) + len(c.Keys) - 1) / len(c.Keys)
			err := build(&c, rows).Validate()
			require.ErrorIs(t, err, ErrShape)
			assert.ErrorContains(t, err, refusals[c.Why])
		})
	}
}
