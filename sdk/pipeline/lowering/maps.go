package lowering

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// addMapFeature adds a feature of a map to the columns that read the map already, if these may make it, or to new
// columns. Columns of a map make dense features and the label, and keys that follow their last key.
func (l *lowering) addMapFeature(f *resolve.Feature, s program.Sink) {
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
			program.Column{Name: m.Keys, Kind: m.KindOfKeys(), Part: program.MapKeys},
			program.Column{Name: m.Values, Kind: f.Column.Kind, List: f.Column.List, Part: program.MapValues})
		if _, seen := l.first[f.Column.Name]; !seen {
			l.first[f.Column.Name] = values
		}
	}
	c := &l.out.Columns[values]
	c.Sinks, c.FitsInt64 = append(c.Sinks, s), c.FitsInt64 || readAsNumbers(&f.Column, f.Ops)
	defer l.allowAbsentMap(values, f.Absent)
	c.Picks = append(c.Picks, program.Pick{Key: f.Key, Text: f.TextKey, Scored: f.Scored()})
	if f.Scored() && values == len(l.out.Columns)-1 {
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
