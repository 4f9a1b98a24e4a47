package cosim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/vocabulary"
)

// drawKeys draws n keys below a modulus. One in four is the key before it or one of the last few, whose lookups the
// unit has under way.
func drawKeys(draw *rand.Rand, n int, modulus int64) []int64 {
	keys := make([]int64, n)
	for i := range keys {
		keys[i] = draw.Int64N(modulus)
		if i > 0 && draw.IntN(4) == 0 {
			keys[i] = keys[i-1-draw.IntN(min(i, 4))]
		}
	}
	return keys
}

// withForeign returns keys among which there are some that the unit does not take.
func withForeign(draw *rand.Rand, keys []int64) []int64 {
	foreign := []int64{-1, vocabularyKeys, vocabularyKeys + 1, 1 << 32, math.MinInt64, math.MaxInt64}
	var mixed []int64
	for _, key := range keys {
		if draw.IntN(4) == 0 { // the last one has the same low bits as the key
			mixed = append(mixed, append(foreign, key+vocabularyKeys)[draw.IntN(len(foreign)+1)])
		}
		mixed = append(mixed, key)
	}
	return mixed
}

// vocabularyCases have unit vocabulary make the vocabularies of sections, one behind the other, and look keys up in
// vocabularies of several sizes.
func vocabularyCases(t *testing.T, draw *rand.Rand, count int) []unitCase {
	var cases []unitCase
	for _, modulus := range []int64{1, 2, 3, 40, 5000, vocabularyKeys} {
		setup, err := generateVocabulary(modulus)
		require.NoError(t, err)
		long := drawKeys(draw, count/4, modulus)
		sections := [][]int64{{0}, long, drawKeys(draw, count/8, modulus), long,
			withForeign(draw, drawKeys(draw, count/8, modulus)), {-1}, {0, 0, -1}, {0, 0}}
		for range count / 256 {
			sections = append(sections, drawKeys(draw, 1+draw.IntN(20), modulus))
		}
		cases = append(cases, vocabularyCase(fmt.Sprintf("vocabulary of %d sections, modulus %d", len(sections), modulus),
			setup, sections, generatorKernel, generatorReference))
	}
	if short := 1000; count > short {
		all := drawPermutation(draw, vocabularyKeys)
		setup, err := generateVocabulary(vocabularyKeys)
		require.NoError(t, err)
		cases = append(cases, vocabularyCase("vocabulary of all keys", setup, [][]int64{append(all, all[:count]...), all},
			generatorKernel, generatorReference))
	}
	for _, size := range []int{0, 1, 2, 100, vocabularyKeys - 1, vocabularyKeys} {
		list := drawPermutation(draw, vocabularyKeys)[:size]
		setup, err := applyVocabulary(list)
		require.NoError(t, err)
		keys := withForeign(draw, drawKeys(draw, count/8, vocabularyKeys))
		for range min(size, count/8) {
			keys = append(keys, list[draw.IntN(size)])
		}
		cases = append(cases, vocabularyCase(fmt.Sprintf("vocabulary of %d keys of the host", size), setup,
			[][]int64{keys, drawKeys(draw, count/16, 200)},
			func(t *testing.T, keys []int64) []uint64 { return applyKernel(t, list, keys) },
			func(keys []int64) []uint64 { return applyReference(list, keys) }))
	}
	return cases
}

// drawPermutation draws an order of the keys from 0 to below n.
func drawPermutation(draw *rand.Rand, n int) []int64 {
	keys := make([]int64, n)
	for i, key := range draw.Perm(n) {
		keys[i] = int64(key)
	}
	return keys
}

// vocabularyCase returns a case of sections of keys.
func vocabularyCase(name string, setup rtl.Setup, sections [][]int64, kernel func(*testing.T, []int64) []uint64,
	reference func([]int64) []uint64) unitCase {
	c := unitCase{name: name, setup: setup}
	for _, keys := range sections {
		c.stream.Words = append(c.stream.Words, keyTransfers(keys)...)
		c.cycles += len(keys)
	}
	c.kernel = func(t *testing.T, _ Stream) []uint64 {
		var said []uint64
		for _, keys := range sections {
			said = append(said, kernel(t, keys)...)
		}
		return said
	}
	c.reference = func(Stream) []uint64 {
		var said []uint64
		for _, keys := range sections {
			said = append(said, reference(keys)...)
		}
		return said
	}
	c.read = func(results []uint64) ([]uint64, error) { return indicesOf(sections, results) }
	return c
}

// sayIndices returns what kernel, reference and unit agree on: the index of every key, and the keys that are new.
func sayIndices(indices []int32, made []int64) []uint64 {
	var said []uint64
	for _, index := range indices {
		said = append(said, uint64(index))
	}
	for _, key := range made {
		said = append(said, uint64(key))
	}
	return said
}

// inUnit returns the keys that the unit takes.
func inUnit(keys []int64) []int64 {
	var some []int64
	for _, key := range keys {
		if key >= 0 && key < vocabularyKeys {
			some = append(some, key)
		}
	}
	return some
}

// generatorKernel has the drive's generator make the vocabulary of keys, and looks the keys up in its table.
func generatorKernel(_ *testing.T, keys []int64) []uint64 {
	generator := vocabulary.NewGenerator(1 << 20)
	vocabulary.Generate(generator, inUnit(keys))
	indices := make([]int32, len(keys))
	made := generator.Keys()
	vocabulary.Lookup(generator.Table(), indices, keys)
	return sayIndices(indices, made)
}

// generatorReference does the same, key by key.
func generatorReference(keys []int64) []uint64 {
	var made []int64
	places := make(map[int64]int32)
	for _, key := range inUnit(keys) {
		if _, ok := places[key]; !ok {
			places[key] = int32(len(made))
			made = append(made, key)
		}
	}
	indices := make([]int32, len(keys))
	for i, key := range keys {
		index, ok := places[key]
		if !ok {
			index = vocabulary.Absent
		}
		indices[i] = index
	}
	return sayIndices(indices, made)
}

// applyKernel looks keys up in the drive's table.
func applyKernel(t *testing.T, list, keys []int64) []uint64 {
	table, err := vocabulary.NewTable(list)
	require.NoError(t, err)
	indices := make([]int32, len(keys))
	vocabulary.Lookup(table, indices, keys)
	return sayIndices(indices, nil)
}

// applyReference looks keys up in a map.
func applyReference(list, keys []int64) []uint64 {
	reference, err := vocabulary.NewReference(list)
	if err != nil {
		return nil
	}
	indices := make([]int32, len(keys))
	reference.Lookup(indices, keys)
	return sayIndices(indices, nil)
}

// indicesOf returns what the results of unit vocabulary say of sections of keys. The error says how the results
// contradict themselves.
func indicesOf(sections [][]int64, results []uint64) ([]uint64, error) {
	var said []uint64
	for n, keys := range sections {
		if len(results) < len(keys) {
			return nil, fmt.Errorf("section %d of %d keys has %d results", n, len(keys), len(results))
		}
		var indices []int32
		var made []int64
		for i, key := range keys {
			result := vocabularyResult(results[i])
			switch {
			case result.isLastOfSection != (i == len(keys)-1):
				return nil, fmt.Errorf("section %d, key %d of %d: last is %v", n, i, len(keys), result.isLastOfSection)
			case !result.hasIndex && (result.isNew || result.index != 0):
				return nil, fmt.Errorf("section %d, key %d: absent, with index %d, new %v", n, i, result.index, result.isNew)
			case !result.hasIndex:
				indices = append(indices, vocabulary.Absent)
				continue
			}
			if result.isNew {
				made = append(made, key)
			}
			indices = append(indices, int32(result.index))
		}
		results = results[len(keys):]
		said = append(said, sayIndices(indices, made)...)
	}
	if len(results) > 0 {
		return nil, fmt.Errorf("%d results behind those of the keys", len(results))
	}
	return said, nil
}
