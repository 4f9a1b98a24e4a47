package processortest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/tensor"
)

// Criteo returns a program over rows of Criteo with all dense features and two keys.
func Criteo(source program.Source, m program.Malformed) (*program.Program, *tensor.Schema) {
	p := &program.Program{
		Source: source, Label: true, Malformed: m,
		Output: program.Output{Label: true, Dense: text.Dense, Keys: 2},
	}
	s := &tensor.Schema{
		Label: true, IDs: tensor.Int64,
		Keys: []tensor.Key{{Name: "cat_0", List: true}, {Name: "cat_1", List: true}},
	}
	for i := range 2 {
		ops := []program.Op{sigridhash.Op{Max: 1000}}
		p.Columns = append(p.Columns, program.Column{
			Name: fmt.Sprintf("cat_%d", i), Field: uint16(14 + i), Kind: program.Int64,
			Sinks: []program.Sink{{To: program.ToSparse, Index: uint32(i), Ops: ops}},
		})
	}
	for i := range text.Dense {
		ops := []program.Op{fillnull.Op{}, convert.Op{To: program.Float32}}
		p.Columns = append(p.Columns, program.Column{
			Name: fmt.Sprintf("int_%d", i), Field: uint16(1 + i), Kind: program.Int64,
			Sinks: []program.Sink{{To: program.ToDense, Index: uint32(i), Ops: ops}},
		})
		s.Dense = append(s.Dense, fmt.Sprintf("int_%d", i))
	}
	p.Columns = append(p.Columns, program.Column{Name: "label", Kind: program.Int64, Sinks: []program.Sink{
		{To: program.ToLabel, Ops: []program.Op{fillnull.Op{}, convert.Op{To: program.Float32}}}}})
	return p, s
}

// TextRows returns n rows of text. A malformed row is added after every bad-1 rows; 0 adds none.
func TextRows(n, bad int) []byte {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	var b bytes.Buffer
	for i := range n {
		if bad > 0 && i%bad == bad-1 {
			b.WriteString("1\tnot a row\n")
		}
		if i%41 == 40 {
			b.WriteByte('\n') // an empty line is not a row
		}
		fmt.Fprintf(&b, "%d", rng.IntN(2))
		for range text.Dense {
			b.WriteByte('\t')
			if rng.IntN(4) > 0 {
				fmt.Fprint(&b, rng.IntN(2000)-100)
			}
		}
		for range text.Sparse {
			b.WriteByte('\t')
			if rng.IntN(5) > 0 {
				fmt.Fprintf(&b, "%08x", rng.Uint32())
			}
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// BinaryRows returns n rows in Criteo's binary form.
func BinaryRows(n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(n), 4))
	var b []byte
	for range n * text.BinaryRow / 4 {
		b = binary.LittleEndian.AppendUint32(b, rng.Uint32N(100000))
	}
	return b
}

// OpenText opens rows of Criteo in memory as a partition.
func OpenText(t testing.TB, data []byte, source program.Source, o partition.Options) *partition.Partition {
	p, err := partition.Open(context.Background(), "day_0", bytes.NewReader(data), int64(len(data)), source, o)
	require.NoError(t, err)
	return p
}
