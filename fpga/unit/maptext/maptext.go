package maptext

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/unit/internal/bytecolumn"
)

// MaxKeys is the greatest number of keys.
const MaxKeys = 1 << 16

// ErrKeys says that keys do not ascend, or are too many.
var ErrKeys = errors.New("map_text: keys must ascend")

// Rule says what becomes of a text that the table lacks.
type Rule uint8

// The rules.
const (
	Fail    Rule = iota // The text is an error.
	Default             // The text becomes a value of its own.
	Null                // The text becomes a null.
)

// UnknownError names a text that the table lacks.
type UnknownError struct {
	Index int    // Index is the text's place in the column, from 0.
	Text  []byte // Text is at most the first shownBytes bytes of it.
	Size  int    // Size is the number of its bytes.
}

// shownBytes is how many bytes of a text an error holds.
const shownBytes = 64

// ValueIndex returns the text's place in the column, from 0.
func (e *UnknownError) ValueIndex() int { return e.Index }

// Error implements error.
func (e *UnknownError) Error() string {
	more := ""
	if e.Size > len(e.Text) {
		more = fmt.Sprintf(" (the first of %d bytes)", e.Size)
	}
	return fmt.Sprintf("map_text: the table lacks the text %q%s: add it to the table, or write default or "+
		"unknown: as_null", e.Text, more)
}

// Index finds the places of keys.
type Index struct{ places map[string]int32 }

// New returns the index of keys that ascend by their bytes.
func New(keys []string) (*Index, error) {
	if len(keys) > MaxKeys {
		return nil, fmt.Errorf("%d keys, want at most %d: %w", len(keys), MaxKeys, ErrKeys)
	}
	x := &Index{places: make(map[string]int32, len(keys))}
	for i, key := range keys {
		if i > 0 && key <= keys[i-1] {
			return nil, fmt.Errorf("key %d (%q) behind %q: %w", i, key, keys[i-1], ErrKeys)
		}
		x.places[key] = int32(i)
	}
	return x, nil
}

// Map sets dst[i] to the value of text i, which is data[offsets[i]:offsets[i+1]]. values are as many as the keys. A
// text that the table lacks becomes other with the rule Default, and a null, 0 in dst and valid, with the rule Null.
// valid has a byte a text, 0 for a null, whose dst is 0; it may be nil unless the rule is Null. After an error dst and
// valid are undefined.
func (x *Index) Map(dst []int64, offsets []uint32, data, valid []byte, values []int64, rule Rule, other int64) error {
	if err := bytecolumn.Check(len(dst), offsets, len(data), valid); err != nil {
		return fmt.Errorf("map_text: %w", err)
	}
	if rule == Null && valid == nil && len(dst) > 0 {
		return fmt.Errorf("map_text: no validity for texts that become nulls: %w", bytecolumn.ErrShape)
	}
	for i := range dst {
		dst[i] = 0
		if valid != nil && valid[i] == 0 {
			continue
		}
		text := data[offsets[i]:offsets[i+1]]
		place, found := x.places[string(text)] // does not copy the text
		switch {
		case found:
			dst[i] = values[place]
		case rule == Default:
			dst[i] = other
		case rule == Null:
			valid[i] = 0
		default:
			shown := append([]byte(nil), text[:min(len(text), shownBytes)]...)
			return &UnknownError{Index: i, Text: shown, Size: len(text)}
		}
	}
	return nil
}
