package text_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/fpga/unit/text"
)

// criteoLike writes rows with the shape of Criteo's: small decimals with nulls, eight-digit ids with some nulls.
func criteoLike(seed uint64, rows int) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	var b bytes.Buffer
	for range rows {
		b.WriteByte('0' + byte(rng.IntN(2)))
		for range text.Dense {
			b.WriteByte('\t')
			if rng.IntN(5) > 0 {
				b.WriteString(decimal(int32(rng.ExpFloat64()*20) - 1))
			}
		}
		for range text.Sparse {
			b.WriteByte('\t')
			if rng.IntN(8) > 0 {
				b.WriteString(hex(rng.Uint32()))
			}
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func BenchmarkDecode(b *testing.B) {
	const rows = 8192
	data := criteoLike(1, rows)
	c := text.NewColumns(rows)
	d, _ := text.NewDecoder(text.Options{})
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		d.Reset(text.Position{})
		if res, err := d.Decode(c, 0, rows, data, true); err != nil || res.Rows != rows {
			b.Fatal(res, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}

func BenchmarkIndex(b *testing.B) {
	data := criteoLike(1, 8192)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := text.NewIndex(bytes.NewReader(data), text.Options{}, 1024); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeBinary(b *testing.B) {
	const rows = 8192
	data := make([]byte, rows*text.BinaryRow)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	c := text.NewColumns(rows)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if res, err := text.DecodeBinary(c, 0, rows, data, text.Position{}, true); err != nil || res.Rows != rows {
			b.Fatal(res, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}

func BenchmarkReference(b *testing.B) {
	data := criteoLike(1, 256)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, _, _, err := text.Reference(data, text.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
