package cosim

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/vocabulary"
)

// The keys of unit vocabulary are 0 to vocabularyKeys - 1. The registers lie behind the keys of a vocabulary.
const (
	vocabularyKeys  = 1 << 15
	vocabularyFixed = vocabularyKeys
	vocabularySize  = vocabularyKeys + 1
)

// generateVocabulary returns the setup of unit vocabulary that makes the vocabulary of a section of keys from 0 to
// below modulus.
func generateVocabulary(modulus int64) (rtl.Setup, error) {
	if modulus < 1 || modulus > vocabularyKeys {
		return rtl.Setup{}, &rtl.NotInRTLError{Unit: "vocabulary",
			What: fmt.Sprintf("takes keys of a modulus of 1 to %d, and not of %d", vocabularyKeys, modulus)}
	}
	return rtl.Setup{Unit: "vocabulary", Writes: []rtl.Write{{Address: vocabularyFixed}}}, nil
}

// applyVocabulary returns the setup of unit vocabulary that looks keys up in a vocabulary, whose keys are in the order
// of their indices.
func applyVocabulary(keys []int64) (rtl.Setup, error) {
	setup := rtl.Setup{Unit: "vocabulary"}
	places := make(map[int64]int, len(keys))
	for i, key := range keys {
		if key < 0 || key >= vocabularyKeys {
			return rtl.Setup{}, &rtl.NotInRTLError{Unit: "vocabulary",
				What: fmt.Sprintf("has keys of 0 to %d, and not %d", vocabularyKeys-1, key)}
		}
		if first, ok := places[key]; ok {
			return rtl.Setup{}, &vocabulary.DuplicateError{Key: key, First: first, Second: i}
		}
		places[key] = i
		setup.Writes = append(setup.Writes, rtl.Write{Address: uint16(i), Data: uint64(key)})
	}
	setup.Writes = append(setup.Writes, rtl.Write{Address: vocabularyFixed, Data: 1},
		rtl.Write{Address: vocabularySize, Data: uint64(len(keys))})
	return setup, nil
}

// keyTransfers returns the words of the transfers of a section of keys to unit vocabulary.
func keyTransfers(keys []int64) []uint64 {
	words := make([]uint64, 0, 2*len(keys))
	for i, key := range keys {
		last := uint64(0)
		if i == len(keys)-1 {
			last = 1
		}
		words = append(words, uint64(key), last)
	}
	return words
}

// keyResult is a result of unit vocabulary.
type keyResult struct {
	index           uint32 // It is 0 if the key has none.
	hasIndex, isNew bool
	isLastOfSection bool
}

// vocabularyResult reads the word of a result of unit vocabulary.
func vocabularyResult(word uint64) keyResult {
	return keyResult{index: uint32(word), hasIndex: word>>32&1 == 1, isNew: word>>33&1 == 1,
		isLastOfSection: word>>34&1 == 1}
}

func TestVocabularySetups(t *testing.T) {
	require.Empty(t, keyTransfers(nil))
	require.Equal(t, []uint64{7, 0, math.MaxUint64, 1}, keyTransfers([]int64{7, -1}))
	require.Equal(t, keyResult{index: 9, hasIndex: true, isNew: true}, vocabularyResult(9|1<<32|1<<33))
	require.Equal(t, keyResult{isLastOfSection: true}, vocabularyResult(1<<34))

	for name, try := range map[string]func() error{
		"keys below 32769": func() error { _, err := generateVocabulary(1<<15 + 1); return err },
		"keys below 0":     func() error { _, err := generateVocabulary(0); return err },
		"key 32768":        func() error { _, err := applyVocabulary([]int64{1, 1 << 15}); return err },
		"key -1":           func() error { _, err := applyVocabulary([]int64{-1}); return err },
	} {
		require.ErrorIs(t, try(), rtl.ErrNotInRTL, name)
	}
	var duplicate *vocabulary.DuplicateError
	_, err := applyVocabulary([]int64{5, 6, 5})
	require.ErrorAs(t, err, &duplicate)
	require.Equal(t, vocabulary.DuplicateError{Key: 5, First: 0, Second: 2}, *duplicate)
	for _, modulus := range []int64{1, 1 << 15} {
		_, err = generateVocabulary(modulus)
		require.NoError(t, err)
	}
	_, err = applyVocabulary([]int64{0, 1<<15 - 1})
	require.NoError(t, err)
}
