package columntypes

import (
	"strconv"
	"strings"

	"github.com/millrace/millrace/fpga/program"
)

// Map describes a column that is a map of keys to values, to lists, or to scored lists. A pipeline names its
// features by key, as "id_list_features[101]", or "tags[color]" where keys are text. The column's kind, list and nulls
// are those of each feature. The zero value says that the column is not a map.
type Map struct {
	Keys, Values string // leaves, by path
	Scores       string // leaf of the scores; empty if there are none
	ScoreKind    program.Kind
	TextKeys     bool // keys are text, and not numbers
}

// IsMap reports whether the column is a map.
func (m Map) IsMap() bool { return m.Keys != "" }

// KeyName returns a key of the map as a pipeline names it: text in quotes if it has characters that patterns use.
func (m *Map) KeyName(key int64, text string) string {
	switch {
	case !m.TextKeys:
		return strconv.FormatInt(key, 10)
	case text == "" || strings.TrimSpace(text) != text || strings.ContainsAny(text, KeyMarks) ||
		strconv.Quote(text) != `"`+text+`"`:
		return strconv.Quote(text)
	}
	return text
}

// KeyMarks are characters that a key of text has only in quotes.
const KeyMarks = `",[]*\`

// ExampleKey is a key for errors that tell how features are named.
func (m *Map) ExampleKey() string {
	if m.TextKeys {
		return "name"
	}
	return "101"
}

// KindOfKeys returns the kind of the map's keys in a program.
func (m *Map) KindOfKeys() program.Kind {
	if m.TextKeys {
		return program.Bytes
	}
	return program.Int64
}
