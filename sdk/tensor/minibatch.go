package tensor

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// Name identifies a mini-batch: the job's digest, the epoch, and the mini-batch's number, which is its position in the
// epoch's plan. Two mini-batches of one name are byte for byte the same.
type Name struct {
	Job    [32]byte // dataset.JobDigest
	Epoch  uint64
	Number uint64
}

// String returns JOB/EPOCH/NUMBER, the digest in hex.
func (n Name) String() string { return string(n.appendTo(nil)) }

// appendTo appends what String returns.
func (n Name) appendTo(b []byte) []byte {
	b = strconv.AppendUint(append(hex.AppendEncode(b, n.Job[:]), '/'), n.Epoch, 10)
	return strconv.AppendUint(append(b, '/'), n.Number, 10)
}

// ParseName reads what Name.String writes.
func ParseName(s string) (Name, error) {
	var n Name
	job, rest, _ := strings.Cut(s, "/")
	epoch, number, ok := strings.Cut(rest, "/")
	if !ok || len(job) != 2*len(n.Job) {
		return n, fmt.Errorf("name %.120q, want JOB/EPOCH/NUMBER", s)
	}
	if _, err := hex.Decode(n.Job[:], []byte(job)); err != nil {
		return n, fmt.Errorf("name %.120q: %w", s, err)
	}
	var err error
	if n.Epoch, err = strconv.ParseUint(epoch, 10, 64); err == nil {
		n.Number, err = strconv.ParseUint(number, 10, 64)
	}
	if err != nil {
		return n, fmt.Errorf("name %.120q: %w", s, err)
	}
	return n, nil
}

// Fragment is a place in a mini-batch: number Index, counted from 0, of the Of fragments whose rows the mini-batch has,
// in their order.
type Fragment struct{ Index, Of int }

// String returns INDEX/OF.
func (f Fragment) String() string { return fmt.Sprintf("%d/%d", f.Index, f.Of) }

// MiniBatch is one train-ready mini-batch. Its slices may be views of a drive's memory: the caller must not write them,
// nor read them after Release. Package vocabulary, which takes mini-batches over before they have another holder,
// writes ids over their keys.
type MiniBatch struct {
	Name   Name
	Schema *Schema // shared by all mini-batches of a job; must not be changed
	Rows   int     // B
	// Fragment says which fragment of the mini-batch this is. The zero value: it is the whole mini-batch.
	Fragment Fragment

	Label    []float32 // [B], nil if the schema has no label
	Dense    []float32 // [B, D] row-major, nil if the schema's dense is BFloat16
	Dense16  []uint16  // [B, D] row-major, the bits of BFloat16, nil if the schema's dense is Float32
	Values32 []int32   // [N] if the schema's ids are Int32
	Values64 []int64   // [N] if the schema's ids are Int64
	Lengths  []int32   // [F, B], nil if the schema is Fixed; deduplicated: key after key, RowsOfKey of each
	Weights  []float32 // [N], nil if the schema has no weights

	// Unique is how many different rows each of the schema's G sets of keys has. It is nil if the mini-batch is not
	// deduplicated: if the schema has no sets, and on the way from a drive to Deduplicate.
	Unique  []int32 // [G]
	Inverse []int32 // [G, B]: which of a set's different rows row b has

	holders atomic.Int32 // holders, less one; -1 once the last has released the mini-batch
	release func()       // gives memory back; nil if there is nothing to do
	lent    bool         // the memory is lent
}

// New returns a mini-batch without tensors and with one holder. release, which may be nil, is called once, when the
// last holder releases the mini-batch.
func New(schema *Schema, rows int, release func()) *MiniBatch {
	return &MiniBatch{Schema: schema, Rows: rows, release: release, lent: release != nil}
}

// NewRecycled returns a mini-batch without tensors and with one holder, whose memory is its own. recycle is called
// once, when the last holder releases the mini-batch: the memory may then be used again. If the mini-batch is never
// released, the memory stays its own.
func NewRecycled(schema *Schema, rows int, recycle func()) *MiniBatch {
	return &MiniBatch{Schema: schema, Rows: rows, release: recycle}
}

// Make returns a mini-batch of its own zeroed memory, with room for values sparse values. The error wraps ErrShape.
func Make(schema *Schema, rows, values int) (*MiniBatch, error) {
	if err := schema.Validate(); err != nil {
		return nil, err
	}
	if _, err := Layout(schema, rows, values); err != nil {
		return nil, err
	}
	m := New(schema, rows, nil)
	if schema.Label {
		m.Label = make([]float32, rows)
	}
	if n := rows * len(schema.Dense); len(schema.Dense) > 0 {
		if schema.DenseDType() == BFloat16 {
			m.Dense16 = make([]uint16, n)
		} else {
			m.Dense = make([]float32, n)
		}
	}
	if f := len(schema.Keys); f > 0 {
		if schema.IDs == Int32 {
			m.Values32 = make([]int32, values)
		} else {
			m.Values64 = make([]int64, values)
		}
		if !schema.Fixed() {
			m.Lengths = make([]int32, f*rows)
		}
		if schema.Weights {
			m.Weights = make([]float32, values)
		}
	}
	return m, nil
}

// Retain adds a holder. Each holder calls Release once.
func (m *MiniBatch) Retain() { m.holders.Add(1) }

// Release removes a holder. The last Release gives lent memory back; the tensors must not be used after it. A Release
// after the last has no effect, and panics in debug builds.
func (m *MiniBatch) Release() {
	left := m.holders.Add(-1)
	switch {
	case left == -1:
		release := m.release
		if debug {
			m.Label, m.Dense, m.Dense16, m.Values32, m.Values64 = nil, nil, nil, nil, nil
			m.Lengths, m.Weights, m.Unique, m.Inverse = nil, nil, nil, nil
		}
		if release != nil {
			release()
		}
	case left < -1 && debug:
		panic("tensor: mini-batch " + m.Name.String() + " released more often than it was retained")
	}
}

// OnRelease adds something to do when the last holder has released the mini-batch, after what there is to do already.
// It is called before the mini-batch has further holders.
func (m *MiniBatch) OnRelease(do func()) {
	release := m.release
	m.release = func() {
		if release != nil {
			release()
		}
		do()
	}
}

// Lent reports whether the tensors are lent memory, of which there is little, and which is valid only until Release.
func (m *MiniBatch) Lent() bool { return m.lent }

// Own returns a mini-batch whose memory is not lent: m itself, or a copy. A copy takes over the caller's hold on m.
func (m *MiniBatch) Own() *MiniBatch {
	if !m.lent {
		return m
	}
	defer m.Release()
	return m.Clone()
}

// Clone returns a copy with memory of its own and one holder.
func (m *MiniBatch) Clone() *MiniBatch {
	c := New(m.Schema, m.Rows, nil)
	c.Name, c.Fragment = m.Name, m.Fragment
	c.Label, c.Dense, c.Dense16 = slices.Clone(m.Label), slices.Clone(m.Dense), slices.Clone(m.Dense16)
	c.Values32, c.Values64 = slices.Clone(m.Values32), slices.Clone(m.Values64)
	c.Lengths, c.Weights = slices.Clone(m.Lengths), slices.Clone(m.Weights)
	c.Unique, c.Inverse = slices.Clone(m.Unique), slices.Clone(m.Inverse)
	return c
}

// Values returns N, the number of sparse values.
func (m *MiniBatch) Values() int {
	if m.Schema.IDs == Int32 {
		return len(m.Values32)
	}
	return len(m.Values64)
}

// Bytes returns the bytes of all tensors together, without headers or padding.
func (m *MiniBatch) Bytes() int64 {
	return 2*int64(len(m.Dense16)) +
		4*int64(len(m.Label)+len(m.Dense)+len(m.Values32)+len(m.Lengths)+len(m.Inverse)+len(m.Weights)) +
		8*int64(len(m.Values64))
}

// Equal reports whether both have the same name, fragment, schema and tensors, bit for bit: NaNs of the same bits are
// equal, 0 and -0 are not.
func (m *MiniBatch) Equal(o *MiniBatch) bool { return Diff(m, o) == "" }

// Diff says where two mini-batches first differ, or returns "" if they are Equal.
func Diff(a, b *MiniBatch) string {
	switch {
	case a == nil || b == nil:
		if a == b {
			return ""
		}
		return "one of the mini-batches is nil"
	case a.Name != b.Name:
		return fmt.Sprintf("name: %v, %v", a.Name, b.Name)
	case a.Fragment != b.Fragment:
		return fmt.Sprintf("fragment: %v, %v", a.Fragment, b.Fragment)
	case a.Rows != b.Rows:
		return fmt.Sprintf("rows: %d, %d", a.Rows, b.Rows)
	case !a.Schema.Equal(b.Schema):
		return "schema: " + diffSchemas(a.Schema, b.Schema)
	}
	for _, d := range []string{
		diff("label", a.Label, b.Label, math.Float32bits),
		diff("dense", a.Dense, b.Dense, math.Float32bits),
		diff("dense", a.Dense16, b.Dense16, same),
		diff("kjt.lengths", a.Lengths, b.Lengths, same),
		diff("unique rows", a.Unique, b.Unique, same),
		diff("kjt.inverse", a.Inverse, b.Inverse, same),
		diff("kjt.values", a.Values32, b.Values32, same),
		diff("kjt.values", a.Values64, b.Values64, same),
		diff("kjt.weights", a.Weights, b.Weights, math.Float32bits),
	} {
		if d != "" {
			return d
		}
	}
	return ""
}

// diffSchemas says where two schemas that are not equal first differ.
func diffSchemas(a, b *Schema) string {
	switch {
	case a == nil || b == nil:
		return "one of the mini-batches has none"
	case a.Label != b.Label:
		return fmt.Sprintf("a label: %v, %v", a.Label, b.Label)
	case len(a.Dense) != len(b.Dense):
		return fmt.Sprintf("%d dense features, %d", len(a.Dense), len(b.Dense))
	case len(a.Keys) != len(b.Keys):
		return fmt.Sprintf("%d keys, %d", len(a.Keys), len(b.Keys))
	}
	for i := range a.Dense {
		if a.Dense[i] != b.Dense[i] {
			return fmt.Sprintf("dense feature %d: %q, %q", i, a.Dense[i], b.Dense[i])
		}
	}
	for i, k := range a.Keys {
		o := b.Keys[i]
		if k.Name != o.Name {
			return fmt.Sprintf("key %d: %q, %q", i, k.Name, o.Name)
		}
		if k != o {
			return fmt.Sprintf("key %q: embeddings %d, %d; a list %v, %v; deduplicated in set %d, %d", k.Name,
				k.NumEmbeddings, o.NumEmbeddings, k.List, o.List, k.Set, o.Set)
		}
	}
	switch {
	case a.Weights != b.Weights:
		return fmt.Sprintf("weights: %v, %v", a.Weights, b.Weights)
	case a.IDs != b.IDs && len(a.Keys) > 0:
		return fmt.Sprintf("ids: %v, %v", a.IDs, b.IDs)
	}
	return fmt.Sprintf("dense: %v, %v", a.DenseDType(), b.DenseDType())
}

// same returns an integer as its own bits.
func same[T any](v T) T { return v }

// diff says where two tensors first differ, or returns "".
func diff[T any, B comparable](name string, a, b []T, bits func(T) B) string {
	if len(a) != len(b) {
		return fmt.Sprintf("%s: %d elements, %d elements", name, len(a), len(b))
	}
	for i := range a {
		if bits(a[i]) != bits(b[i]) {
			return fmt.Sprintf("%s[%d]: %v, %v", name, i, a[i], b[i])
		}
	}
	return ""
}
