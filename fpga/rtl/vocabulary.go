package rtl

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/vocabulary"
)

// The keys of unit vocabulary are 0 to vocabularyKeys - 1. The registers lie behind the keys of a vocabulary.
const (
	vocabularyKeys  = 1 << 15
	vocabularyFixed = vocabularyKeys
	vocabularySize  = vocabularyKeys + 1
)

// GenerateVocabulary returns the setup of unit vocabulary that makes the vocabulary of a section of keys from 0 to
// below modulus.
func GenerateVocabulary(modulus int64) (Setup, error) {
	if modulus < 1 || modulus > vocabularyKeys {
		return Setup{}, &NotInRTLError{Unit: "vocabulary",
			What: fmt.Sprintf("takes keys of a modulus of 1 to %d, and not of %d", vocabularyKeys, modulus)}
	}
	return Setup{Unit: "vocabulary", Writes: []Write{{Address: vocabularyFixed}}}, nil
}

// ApplyVocabulary returns the setup of unit vocabulary that looks keys up in a vocabulary, whose keys are in the order
// of their indices.
func ApplyVocabulary(keys []int64) (Setup, error) {
	setup := Setup{Unit: "vocabulary"}
	places := make(map[int64]int, len(keys))
	for i, key := range keys {
		if key < 0 || key >= vocabularyKeys {
			return Setup{}, &NotInRTLError{Unit: "vocabulary",
				What: fmt.Sprintf("has keys of 0 to %d, and not %d", vocabularyKeys-1, key)}
		}
		if first, ok := places[key]; ok {
			return Setup{}, &vocabulary.DuplicateError{Key: key, First: first, Second: i}
		}
		places[key] = i
		setup.Writes = append(setup.Writes, Write{Address: uint16(i), Data: uint64(key)})
	}
	setup.Writes = append(setup.Writes, Write{Address: vocabularyFixed, Data: 1},
		Write{Address: vocabularySize, Data: uint64(len(keys))})
	return setup, nil
}

// KeyTransfers returns the words of the transfers of a section of keys to unit vocabulary.
func KeyTransfers(keys []int64) []uint64 {
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

// KeyResult is a result of unit vocabulary.
type KeyResult struct {
	Index   uint32 // 0 if the key has none
	Present bool   // the key has an index
	New     bool   // and got it with this result
	Last    bool   // the section ends
}

// VocabularyResult reads the word of a result of unit vocabulary.
func VocabularyResult(word uint64) KeyResult {
	return KeyResult{Index: uint32(word), Present: word>>32&1 == 1, New: word>>33&1 == 1, Last: word>>34&1 == 1}
}
