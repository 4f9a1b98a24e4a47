package terminal

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/millrace/millrace/internal/quantity"
)

// Rows writes structs as a table for [Table] to lay out: a line of headings, and a line for each struct. A field with a
// tag is a column. Its tag holds the heading and, behind a bar, the format of the value:
//
//	Name     string   `table:"node"`
//	LastSeen float64  `table:"last seen|%.1f s ago"`
//	Busy     float64  `table:"busy|%.0f%%"`           // 0.25 is 25%
//	Cores    int64    `table:"cores|-%d"`             // 0 is a dash
//	URLs     []string `table:"at"`                    // a, b
//	Reasons  []string `table:"reasons| "`             // a b
//	Groups   []int64  `table:"row groups|%d"`         // the number of its elements
//	Batches  int64    `table:"buffered|# mini-batch"` // 1 mini-batch, 2 mini-batches
//	Mean     *float64 `table:"mean|%.3f"`
//	Note     string   `table:""`
//	shown    string   `table:"state"`                 // a text that only the table has
//
// An empty text and a nil pointer are shown as a dash. A column without a heading shows nothing for them, and is left
// out if no row has a text there. Columns of an embedded struct stand where it does.
func Rows[T any](w io.Writer, rows []T) {
	columns := tableColumns(reflect.TypeFor[T]())
	lines := make([][]string, len(rows)+1)
	for _, c := range columns {
		column := []string{c.heading}
		for i := range rows {
			column = append(column, c.cell(reflect.ValueOf(&rows[i]).Elem().FieldByIndex(c.field)))
		}
		if strings.Join(column, "") == "" {
			continue
		}
		for i := range lines {
			lines[i] = append(lines[i], column[i])
		}
	}
	for _, cells := range lines {
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
}

// tableColumn is a field of a struct that a table shows.
type tableColumn struct {
	field           []int
	heading, format string
}

// tableColumns returns the columns of a struct's type.
func tableColumns(t reflect.Type) []tableColumn {
	var columns []tableColumn
	for _, f := range reflect.VisibleFields(t) {
		if tag, ok := f.Tag.Lookup("table"); ok {
			heading, format, _ := strings.Cut(tag, "|")
			columns = append(columns, tableColumn{f.Index, heading, format})
		}
	}
	return columns
}

// cell returns the cell of a field's value.
func (c *tableColumn) cell(v reflect.Value) string {
	if text := c.text(v); text != "" || c.heading == "" {
		return Cell(text)
	}
	return "-"
}

// text returns a field's value in the format of the column.
func (c *tableColumn) text(v reflect.Value) string {
	format, dashed := strings.CutPrefix(c.format, "-")
	if v.Kind() == reflect.Pointer || dashed {
		if v.IsZero() {
			return ""
		}
		v = reflect.Indirect(v)
	}
	verb := strings.Contains(format, "%")
	if v.Kind() == reflect.Slice {
		if v.Type().Elem().Kind() == reflect.String && !verb {
			return joinTexts(v, cmp.Or(format, ", "))
		}
		v = reflect.ValueOf(v.Len())
	}
	if noun, ok := strings.CutPrefix(format, "# "); ok {
		return quantity.Of(v.Convert(reflect.TypeFor[int64]()).Int(), noun)
	}
	switch {
	case v.Kind() == reflect.String && !verb: // Interface panics for a field that is not exported
		return v.String()
	case strings.HasSuffix(format, "%%"):
		return fmt.Sprintf(format, 100*v.Float())
	}
	return fmt.Sprintf(cmp.Or(format, "%v"), v.Interface())
}

// joinTexts joins a slice of texts.
func joinTexts(list reflect.Value, separator string) string {
	texts := make([]string, list.Len())
	for i := range texts {
		texts[i] = list.Index(i).String()
	}
	return strings.Join(texts, separator)
}
