package pipeline

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/fpga/program"
)

// MapInfo describes a column that is a map of keys to values, to lists, or to scored lists. A pipeline names its
// features by key, as "id_list_features[101]", or "tags[color]" where keys are text. The column's kind, list and nulls
// are those of each feature. The zero value says that the column is not a map.
type MapInfo struct {
	Keys, Values string       // leaves, by path
	Scores       string       // leaf of the scores; empty if there are none
	ScoreKind    program.Kind // of the scores
	TextKeys     bool         // keys are text, and not numbers
}

// IsMap reports whether the column is a map.
func (m MapInfo) IsMap() bool { return m.Keys != "" }

// columnRef refers to a column, or to a feature of a column that is a map.
type columnRef struct {
	column int // in the schema
	key    int64
	text   string // the key of a map whose keys are text
	isMap  bool
}

// keyName returns a key of the map as a pipeline names it: text in quotes if it has characters that patterns use.
func (m *MapInfo) keyName(key int64, text string) string {
	switch {
	case !m.TextKeys:
		return strconv.FormatInt(key, 10)
	case text == "" || strings.TrimSpace(text) != text || strings.ContainsAny(text, keyMarks) ||
		strconv.Quote(text) != `"`+text+`"`:
		return strconv.Quote(text)
	}
	return text
}

// keyMarks are characters that a key of text has only in quotes.
const keyMarks = `",[]*\`

// exampleKey is a key for errors that tell how features are named.
func (m *MapInfo) exampleKey() string {
	if m.TextKeys {
		return "name"
	}
	return "101"
}

// kindOfKeys returns the kind of the map's keys in a program.
func (m *MapInfo) kindOfKeys() program.Kind {
	if m.TextKeys {
		return program.Bytes
	}
	return program.Int64
}

// name returns the name in a pipeline, and the digits of the number at its end.
func (n columnRef) name(schema []ColumnInfo) (name, digits string) {
	name = schema[n.column].Name
	if !n.isMap {
		_, digits = splitNumber(name)
		return name, digits
	}
	key := schema[n.column].Map.keyName(n.key, n.text)
	if digits = key; schema[n.column].Map.TextKeys {
		_, digits = splitNumber(n.text)
	}
	return name + "[" + key + "]", digits
}

// matchMap returns the features that a pattern such as "m[1]" or "m[1..3, 7]" names. ok is false if the pattern is of
// another form.
func matchMap(text string, schema []ColumnInfo, byName map[string]int) (found []columnRef, wrong *Error, ok bool) {
	name, keys, ok := strings.Cut(strings.TrimSuffix(text, "]"), "[")
	if !ok || !strings.HasSuffix(text, "]") {
		return nil, nil, false
	}
	i, there := byName[name]
	if !there {
		return nil, patternError(ErrMissingColumn, "%q, of %q, is not in the dataset%s", shorten(name), shorten(text),
			suggest(name, names(schema))), true
	}
	bad := func(format string, args ...any) ([]columnRef, *Error, bool) {
		return nil, patternError(ErrPattern, "%q: %s", shorten(text), fmt.Sprintf(format, args...)), true
	}
	if c := &schema[i]; !c.Map.IsMap() && c.Unsupported == nil {
		return bad("%s is not a map", shorten(name))
	}
	if schema[i].Map.TextKeys {
		texts, why := splitTextKeys(keys)
		if why != "" {
			return bad("%s", why)
		}
		for _, key := range texts {
			found = append(found, columnRef{column: i, text: key, isMap: true})
		}
		return found, nil, true
	}
	for _, item := range strings.Split(keys, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(item), "..")
		if !isRange {
			last = first
		}
		a, errA := strconv.ParseInt(first, 10, 64)
		b, errB := strconv.ParseInt(last, 10, 64)
		switch {
		case strings.Contains(item, "*"):
			return bad("which features a map holds only its rows tell: name them, as [101] or [101..120, 205]")
		case errA != nil || errB != nil:
			return bad("%q is not a key, want a whole number or a range of them, as 101..120",
				shorten(strings.TrimSpace(item)))
		case a > b:
			return bad("the first key of %q is above the last", shorten(strings.TrimSpace(item)))
		case uint64(b)-uint64(a) >= uint64(MaxFeatures-len(found)):
			return bad("more than %d features", MaxFeatures)
		}
		for k := a; ; k++ {
			found = append(found, columnRef{column: i, key: k, isMap: true})
			if k == b {
				break
			}
		}
	}
	return found, nil, true
}

// splitTextKeys returns the keys of text that a pattern such as `color, "a, b"` names between brackets. why says what
// is wrong with the pattern.
func splitTextKeys(list string) (keys []string, why string) {
	for {
		list = strings.TrimSpace(list)
		var key string
		if quoted, err := strconv.QuotedPrefix(list); err == nil && list[0] == '"' {
			key, _ = strconv.Unquote(quoted)
			list = strings.TrimSpace(list[len(quoted):])
		} else {
			item, _, _ := strings.Cut(list, ",")
			list = list[len(item):]
			switch key = strings.TrimSpace(item); {
			case strings.Contains(key, "*"):
				return nil, "which features a map holds only its rows tell: name them, as [color] or [color, size]"
			case key == "" || strings.ContainsAny(key, keyMarks):
				return nil, fmt.Sprintf("%q is not a key; write keys with such characters in quotes, as \"a, b\"", shorten(key))
			}
		}
		if keys = append(keys, key); len(keys) > MaxFeatures {
			return nil, fmt.Sprintf("more than %d features", MaxFeatures)
		}
		if list == "" {
			return keys, ""
		}
		if list[0] != ',' {
			return nil, fmt.Sprintf("%q behind a key, want a comma", shorten(list))
		}
		list = list[1:]
	}
}

// hasScores reports whether the feature's ids have scores.
func (f *Feature) hasScores() bool {
	return f.Column.Map.Scores != "" || f.step != nil && f.step.yields.Scored
}

// scored reports whether the feature's scores become weights.
func (f *Feature) scored() bool { return f.hasScores() && !f.DropScores }

// Weights reports whether mini-batches have a weight for every id: the score in a scored list, and 1 for other ids.
func (r *Resolved) Weights() bool {
	for i := range r.Keys {
		if r.Keys[i].scored() {
			return true
		}
	}
	return false
}

// addMapFeature adds a feature of a map to the columns that read the map already, if these may make it, or to new
// columns. Columns of a map make dense features and the label, and keys that follow their last key.
func (l *lowering) addMapFeature(f *Feature, s program.Sink) {
	m := &f.Column.Map
	values, have := l.first[f.Column.Name]
	if s.To == program.ToSparse {
		values = len(l.out.Columns) - 1
		if values >= 0 && l.out.Columns[values].Part == program.MapScores {
			values--
		}
		have = values >= 0 && l.out.Columns[values].Part == program.MapValues && l.out.Columns[values].Name == m.Values
	}
	if !have {
		values = len(l.out.Columns) + 1
		l.out.Columns = append(l.out.Columns,
			program.Column{Name: m.Keys, Kind: m.kindOfKeys(), Part: program.MapKeys},
			program.Column{Name: m.Values, Kind: f.Column.Kind, List: f.Column.List, Part: program.MapValues})
		if _, seen := l.first[f.Column.Name]; !seen {
			l.first[f.Column.Name] = values
		}
	}
	c := &l.out.Columns[values]
	c.Sinks, c.FitsInt64 = append(c.Sinks, s), c.FitsInt64 || readAsNumbers(&f.Column, f.Ops)
	defer l.allowAbsentMap(values, f.absent)
	c.Picks = append(c.Picks, program.Pick{Key: f.Key, Text: f.TextKey, Scored: f.scored()})
	if f.scored() && values == len(l.out.Columns)-1 {
		l.out.Columns = append(l.out.Columns, program.Column{Name: m.Scores, Kind: m.ScoreKind, List: true,
			Part: program.MapScores, FitsInt64: m.ScoreKind == program.Int64})
	}
}

// allowAbsentMap says of all columns of a map that partitions may lack them, if a feature of the map allows it. values
// is the column of the map's values.
func (l *lowering) allowAbsentMap(values int, absent bool) {
	columns := l.out.Columns
	absent = absent || columns[values].Absent
	for i := values - 1; i < len(columns) && (i <= values || columns[i].Part == program.MapScores); i++ {
		columns[i].Absent = absent
	}
}
