package operators

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/fpga/unit/clamp"
	"github.com/millrace/millrace/fpga/unit/hextoint"
	"github.com/millrace/millrace/fpga/unit/logn"
	"github.com/millrace/millrace/fpga/unit/positivemodulus"
	unit "github.com/millrace/millrace/fpga/unit/vocabulary"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// Keys of MiniPipe's vocabularies, which are also its moduli.
const (
	smallVocabulary = 8 << 10
	largeVocabulary = 512 << 10
)

// operator is one line of MiniPipe's table.
type operator struct {
	name    string
	columns int // D-I has this number of columns.
	paper   Paper
	// prepare makes the column of a thread and returns what passes the column through the operator.
	prepare func(o *Options, thread uint64) (turn func() error, err error)
}

// table returns MiniPipe's table.
func table() []operator {
	return []operator{
		{"Neg2Zero", 13, Paper{4.20, 0.043, 0.23}, negativeToZero},
		{"Logarithm", 13, Paper{475.28, 0.015, 0.23}, logarithm},
		{"Hex2Int", 26, Paper{410.59, 0.059, 0.92}, hexToInt},
		{"Modulus", 26, Paper{354.25, 0.026, 0.46}, modulus},
		{"VocabGen-8K", 26, Paper{4.97, 8.76, 0.92}, vocabularyOf(smallVocabulary)},
		{"VocabMap-8K", 26, Paper{21.94, 0.11, 0.46}, lookup(smallVocabulary)},
		{"VocabGen-512K", 26, Paper{549.79, 69.03, 2.15}, vocabularyOf(largeVocabulary)},
		{"VocabMap-512K", 26, Paper{2390.26, 0.11, 2.96}, lookup(largeVocabulary)},
	}
}

func (o *Options) random(thread uint64) *rand.Rand { return rand.New(rand.NewPCG(o.Seed, thread)) }

// dense draws real numbers, of which a fifth is below zero.
func (o *Options) dense(thread uint64) []float32 {
	rng, values := o.random(thread), make([]float32, o.Values)
	for i := range values {
		values[i] = float32(math.Floor(rng.ExpFloat64() * 100))
		if rng.IntN(5) == 0 {
			values[i] = -1 - values[i]
		}
	}
	return values
}

// ids draws uniform numbers below a bound.
func (o *Options) ids(thread uint64, below int64) []int64 {
	rng, values := o.random(thread), make([]int64, o.Values)
	for i := range values {
		values[i] = rng.Int64N(below)
	}
	return values
}

func negativeToZero(o *Options, thread uint64) (func() error, error) {
	values := o.dense(thread)
	to := make([]float32, len(values))
	return func() error {
		copy(to, values) // the kernel works in place
		return clamp.Float32(to, 0, float32(math.Inf(1)))
	}, nil
}

func logarithm(o *Options, thread uint64) (func() error, error) {
	values := o.dense(thread)
	to := make([]float32, len(values))
	for i := range values {
		values[i] = max(values[i], 0)
	}
	inf := float32(math.Inf(1))
	return func() error {
		logn.LogClamped(to, values, 1, -inf, inf)
		return nil
	}, nil
}

func hexToInt(o *Options, thread uint64) (func() error, error) {
	ids := o.ids(thread, 1<<32)
	offsets, data := make([]uint32, len(ids)+1), make([]byte, 0, 8*len(ids))
	for i, id := range ids {
		data = fmt.Appendf(data, "%08x", id)
		offsets[i+1] = uint32(len(data))
	}
	to, valid := make([]int64, len(ids)), make([]byte, len(ids))
	for i := range valid {
		valid[i] = 1
	}
	return func() error { return hextoint.Hex(to, offsets, data, valid) }, nil
}

func modulus(o *Options, thread uint64) (func() error, error) {
	ids := o.ids(thread, 1<<32)
	to := make([]int64, len(ids))
	m, err := positivemodulus.New(largeVocabulary)
	return func() error {
		m.Mod(to, ids)
		return nil
	}, err
}

// vocabularyOf returns the measurement that builds a vocabulary of at most keys keys, and its file, in each turn.
func vocabularyOf(keys int64) func(o *Options, thread uint64) (func() error, error) {
	return func(o *Options, thread uint64) (func() error, error) {
		ids := o.ids(thread, keys)
		return func() (err error) {
			folder, err := os.MkdirTemp(o.Folder, "operators")
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
			b, err := vocabulary.NewBuilder([]vocabulary.Column{{Name: "id"}}, vocabulary.Rules{},
				vocabulary.BuilderOptions{Folder: folder})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, b.Close()) }()
			const batch = 8192
			for i := 0; i < len(ids); i += batch {
				if err := b.Add(0, uint64(i), ids[i:min(i+batch, len(ids))], nil); err != nil {
					return err
				}
			}
			_, err = b.Finish(filepath.Join(folder, "id.vocab"))
			return err
		}, nil
	}
}

// errLacking says that a vocabulary of all ids lacks one of them.
var errLacking = errors.New("the vocabulary lacks an id")

// lookup returns the measurement that looks ids up in a vocabulary of at most keys keys.
func lookup(keys int64) func(o *Options, thread uint64) (func() error, error) {
	return func(o *Options, thread uint64) (func() error, error) {
		list := make([]int64, keys)
		for i, key := range o.random(^thread).Perm(int(keys)) {
			list[i] = int64(key)
		}
		t, err := unit.NewTable(list)
		if err != nil {
			return nil, err
		}
		ids := o.ids(thread, keys)
		to := make([]int32, len(ids))
		return func() error {
			if !unit.Lookup(t, to, ids) {
				return errLacking
			}
			return nil
		}, nil
	}
}
