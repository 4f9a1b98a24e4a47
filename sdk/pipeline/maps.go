package pipeline

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/fpga/program"
)

// MapInfo is what there is to know of a column that is a map, of keys to values, to lists, or to scored lists. Its features are
// named by key, as "id_list_features[101]"; what the column says of kinds, lists and nulls holds for each of them. The zero
// value is no map.
type MapInfo struct {
	Keys, Values string       // leaves, by path
	Scores       string       // leaf of the scores; empty if there are none
	ScoreKind    program.Kind // of the scores
}

// IsMap tells whether there is a map.
func (m MapInfo) IsMap() bool { return m.Keys != "" }

// named is a column, or a feature of one that is a map.
type named struct {
	column int // in the schema
	key    int64
	isMap  bool
}

// name is what pipelines call it, and digits the number at its end.
func (n named) name(schema []ColumnInfo) (name, digits string) {
	name = schema[n.column].Name
	if !n.isMap {
		_, digits = splitNumber(name)
		return name, digits
	}
	digits = strconv.FormatInt(n.key, 10)
	return name + "[" + digits + "]", digits
}

// matchMap returns the features that a pattern such as "m[1]" or "m[1..3, 7]" names; ok is false where it is none.
func matchMap(text string, schema []ColumnInfo, byName map[string]int) (found []named, wrong *Error, ok bool) {
	name, keys, ok := strings.Cut(strings.TrimSuffix(text, "]"), "[")
	if !ok || !strings.HasSuffix(text, "]") {
		return nil, nil, false
	}
	i, there := byName[name]
	if !there {
		return nil, mismatch(ErrMissingColumn, "%q, of %q, is not in the dataset%s", clip(name), clip(text), suggest(name, names(schema))), true
	}
	bad := func(format string, args ...any) ([]named, *Error, bool) {
		return nil, mismatch(ErrPattern, "%q: %s", clip(text), fmt.Sprintf(format, args...)), true
	}
	if c := &schema[i]; !c.Map.IsMap() && c.Unsupported == nil {
		return bad("%s is no map", clip(name))
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
			return bad("%q is no key, want a whole number or a range of them, as 101..120", clip(strings.TrimSpace(item)))
		case a > b:
			return bad("the first key of %q is above the last", clip(strings.TrimSpace(item)))
		case uint64(b)-uint64(a) >= uint64(maxFeatures-len(found)):
			return bad("more than %d features", maxFeatures)
		}
		for k := a; ; k++ {
			found = append(found, named{column: i, key: k, isMap: true})
			if k == b {
				break
			}
		}
	}
	return found, nil, true
}

// scored tells whether the feature's scores become weights.
func (f *Feature) scored() bool { return f.Column.Map.Scores != "" && !f.DropScores }

// Weights reports whether mini-batches have a weight for every id: the scores of scored lists, and 1 elsewhere.
func (r *Resolved) Weights() bool {
	for i := range r.Keys {
		if r.Keys[i].scored() {
			return true
		}
	}
	return false
}

// mapSink adds a feature of a map to the columns that read it already, when they may take it, or else to new ones. They take
// whatever is no key, and keys that follow theirs.
func (l *lowering) mapSink(f *Feature, s program.Sink) {
	m := &f.Column.Map
	at, have := l.first[f.Column.Name]
	if s.To == program.ToSparse {
		at = len(l.out.Columns) - 1
		if at >= 0 && l.out.Columns[at].Part == program.MapScores {
			at--
		}
		have = at >= 0 && l.out.Columns[at].Part == program.MapValues && l.out.Columns[at].Name == m.Values
	}
	if !have {
		at = len(l.out.Columns) + 1
		l.out.Columns = append(l.out.Columns,
			program.Column{Name: m.Keys, Kind: program.Int64, Part: program.MapKeys},
			program.Column{Name: m.Values, Kind: f.Column.Kind, List: f.Column.List, Part: program.MapValues})
		if _, seen := l.first[f.Column.Name]; !seen {
			l.first[f.Column.Name] = at
		}
	}
	c := &l.out.Columns[at]
	c.Sinks = append(c.Sinks, s)
	c.Picks = append(c.Picks, program.Pick{Key: f.Key, Scored: f.scored()})
	if f.scored() && at == len(l.out.Columns)-1 {
		l.out.Columns = append(l.out.Columns, program.Column{Name: m.Scores, Kind: m.ScoreKind, List: true, Part: program.MapScores})
	}
}
