package draft

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// writer writes the document of a draft.
type writer struct {
	files   []source.Location
	rows    int64 // All files together have these rows.
	sampled int   // rows that were sampled
	columns []columntypes.Column
}

// group is neighbouring columns that become features in the same way.
type group struct {
	role    role
	why     string
	ops     []pipeline.Op
	guesses []*guess
}

// document returns the pipeline with comments, or nil if no column can become a feature.
func (w *writer) document(guesses []*guess, leftOut []LeftOut) ([]byte, error) {
	var label *guess
	var dense, sparse []group
	for _, g := range guesses {
		switch g.role {
		case roleLabel:
			label = g
		case roleNumber:
			dense = addToGroups(dense, g)
		case roleID:
			sparse = addToGroups(sparse, g)
		}
	}
	if label == nil && len(dense) == 0 && len(sparse) == 0 {
		return nil, nil
	}
	root := &yaml.Node{Kind: yaml.MappingNode}
	add := func(key string, value *yaml.Node, comments ...string) {
		root.Content = append(root.Content, keyNode(key, comments...), value)
	}
	add("name", textNode(pipelineName(w.files)), w.heading()...)
	add("batch", numberNode(pipeline.DefaultBatch))
	if len(sparse) > 0 {
		add("ids", textNode("int32"), fmt.Sprintf("Ids are hashed below %d, which fits int32.", hashedIDs))
	}
	if label != nil {
		add("label", labelNode(label), labelComments(label)...)
	}
	if len(dense) > 0 {
		add("dense", w.groupNodes(dense), noLabelComments(label)...)
	}
	if len(sparse) > 0 {
		var comments []string
		if len(dense) == 0 {
			comments = noLabelComments(label)
		}
		add("sparse", w.groupNodes(sparse), comments...)
	}
	if len(leftOut) > 0 {
		lines := []string{"Left out:"}
		for _, column := range leftOut {
			lines = append(lines, "  "+visibleName(column.Column)+": "+column.Why)
		}
		root.FootComment = commentText(lines)
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("write the draft: %w", err)
	}
	return b.Bytes(), encoder.Close()
}

// addToGroups adds a column to the last group if the column becomes a feature in the same way, and to a new group
// otherwise.
func addToGroups(groups []group, g *guess) []group {
	sameOps := func(a, b pipeline.Op) bool { return a.Name == b.Name }
	if n := len(groups); n > 0 && groups[n-1].why == g.why && slices.EqualFunc(groups[n-1].ops, g.ops, sameOps) &&
		g.column.Name != "" && groups[n-1].guesses[0].column.Name != "" {
		groups[n-1].guesses = append(groups[n-1].guesses, g)
		return groups
	}
	return append(groups, group{role: g.role, why: g.why, ops: g.ops, guesses: []*guess{g}})
}

// heading says which files the document was drafted from.
func (w *writer) heading() []string {
	of := filepath.Base(w.files[0].String())
	if len(w.files) > 1 {
		of += " and " + quantity.Of(len(w.files)-1, "more file")
	}
	looked := fmt.Sprintf("the first %d were looked at", w.sampled)
	if int64(w.sampled) == w.rows {
		looked = "all were looked at"
	}
	return []string{
		fmt.Sprintf("A draft, made by millrace pipeline init from %s: %s, %s.", of, quantity.Of(w.rows, "row"), looked),
		"Comments say what was assumed: read them, and change what is wrong.",
	}
}

// labelComments says why the column is the label.
func labelComments(label *guess) []string {
	lines := []string{"The label, because of its name" + label.seen.comment() + "."}
	if label.column.Nullable {
		lines = append(lines, "The column may hold nulls: a null label becomes 0.")
	}
	return lines
}

// noLabelComments says that there is no label.
func noLabelComments(label *guess) []string {
	if label != nil {
		return nil
	}
	return []string{"No column has the name of a label: mini-batches have none. For one write",
		"  label: {column: NAME, null: 0}"}
}

// groupNodes writes groups of columns, each with a comment.
func (w *writer) groupNodes(groups []group) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range groups {
		g := &groups[i]
		item := &yaml.Node{Kind: yaml.MappingNode, HeadComment: commentText(g.comments())}
		columns := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, pattern := range w.patterns(g.guesses) {
			columns.Content = append(columns.Content, textNode(pattern))
		}
		item.Content = append(item.Content, keyNode("columns"), columns)
		if g.guesses[0].column.Name == "" {
			item.Content = append(item.Content, keyNode("as"), textNode("unnamed"))
		}
		if len(g.ops) > 0 {
			item.Content = append(item.Content, keyNode("ops"), opsNode(g.ops))
		}
		list.Content = append(list.Content, item)
	}
	return list
}

// comments returns the assumptions about a group's columns.
func (g *group) comments() []string {
	var seen valueRange
	nullable := false
	for _, one := range g.guesses {
		if one.seen.known {
			seen.add(one.seen.least)
			seen.add(one.seen.greatest)
		}
		nullable = nullable || one.column.Nullable && !one.column.List
	}
	why := []rune(g.why)
	why[0] = unicode.ToUpper(why[0])
	lines := []string{string(why) + seen.comment() + "."}
	switch {
	case g.role == roleNumber && len(g.ops) > 1 && !g.guesses[0].isDecimal():
		lines = append(lines, "A null becomes 0, a number below 0 too; then ln(x + 1), since some are large.")
		if !nullable {
			lines[1] = "A number below 0 becomes 0; then ln(x + 1), since some are large."
		}
	case g.role == roleNumber && nullable:
		lines = append(lines, "A null becomes 0.")
	case g.role == roleID && nullable:
		lines = append(lines, "A null becomes the id 0.")
	}
	first := &g.guesses[0].column
	if g.role == roleID && seen.known && seen.least < 0 && first.Bits == 32 {
		lines = append(lines, "If negative ids are unsigned numbers kept as int32, put zero_extend before sigrid_hash.")
	}
	return lines
}

// comment renders the range for a comment.
func (r valueRange) comment() string {
	if !r.known {
		return ""
	}
	return fmt.Sprintf("; seen: %s to %s", shortNumber(r.least), shortNumber(r.greatest))
}

func shortNumber(x float64) string {
	if x == float64(int64(x)) {
		return strconv.FormatInt(int64(x), 10)
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}

// patterns returns the patterns that name a group's columns, in their order: a range where at least three neighbours
// are numbered consecutively, and the name otherwise.
func (w *writer) patterns(guesses []*guess) []string {
	var names, short []string
	for _, g := range guesses {
		names = append(names, g.column.Name)
	}
	for i := 0; i < len(names); {
		n := 1
		for i+n < len(names) && isNumberedNext(names[i+n-1], names[i+n]) {
			n++
		}
		if n < 3 {
			n = 1
			short = append(short, names[i])
		} else {
			short = append(short, names[i]+".."+names[i+n-1])
		}
		i += n
	}
	if w.nameColumns(short, names) {
		return short
	}
	return names
}

// isNumberedNext reports whether b is a with the next number at its end.
func isNumberedNext(a, b string) bool {
	prefix, digits := splitNumber(a)
	otherPrefix, otherDigits := splitNumber(b)
	n, err := strconv.ParseUint(digits, 10, 31)
	return err == nil && prefix == otherPrefix && otherDigits == fmt.Sprintf("%0*d", len(digits), n+1)
}

// nameColumns reports whether patterns name exactly the columns, in that order. They may not, because a column's
// name can contain characters that have a meaning in a pattern.
func (w *writer) nameColumns(patterns, names []string) bool {
	trial := &pipeline.Spec{Sparse: []pipeline.Group{{Columns: pipeline.Columns(patterns...),
		Ops: []pipeline.Op{pipeline.Bucketize(pipeline.Borders{List: []pipeline.Number{pipeline.Int(0)}})}}}}
	columns := make([]columntypes.Column, len(w.columns))
	for i := range w.columns {
		// Types do not matter here.
		columns[i] = columntypes.Column{Name: w.columns[i].Name, Kind: program.Int64}
	}
	resolved, err := resolve.Pipeline(trial, columns)
	if err != nil || len(resolved.Keys) != len(names) {
		return false
	}
	for i := range names {
		if resolved.Keys[i].Column.Name != names[i] {
			return false
		}
	}
	return true
}

// labelNode writes the label.
func labelNode(label *guess) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	n.Content = append(n.Content, keyNode("column"), textNode(label.column.Name))
	if label.column.Nullable {
		null := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"} // written without quotes
		n.Content = append(n.Content, null, numberNode(0))
	}
	if label.seen.nan {
		n.Content = append(n.Content, keyNode("nan"), numberNode(0))
	}
	return n
}

// opsNode writes operators in their shortest form.
func opsNode(ops []pipeline.Op) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for i := range ops {
		op := &ops[i]
		if len(op.Args) == 0 {
			list.Content = append(list.Content, textNode(op.Name))
			continue
		}
		parameters := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
		for _, a := range op.Args {
			switch value := a.Value.(type) { // a draft has no other parameters
			case pipeline.Number:
				parameters.Content = append(parameters.Content, keyNode(a.Name), numberNode(value.Int))
			case pipeline.Text:
				parameters.Content = append(parameters.Content, keyNode(a.Name), textNode(string(value)))
			}
		}
		if op.Name == "fill_null" || op.Name == "fill_nan" || op.Name == "hash_bytes" || op.Name == "decimal" {
			parameters = parameters.Content[1]
		}
		list.Content = append(list.Content, &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle,
			Content: []*yaml.Node{keyNode(op.Name), parameters}})
	}
	return list
}

func keyNode(key string, comments ...string) *yaml.Node {
	n := textNode(key)
	n.HeadComment = commentText(comments)
	return n
}

// textNode returns a text. A text with a line's end would be written as a block, in which YAML does not read a tab at
// the beginning of a line back; quotes escape both.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if strings.ContainsFunc(s, unicode.IsControl) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

func numberNode(n int64) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(n, 10)}
}

// commentWidth is the width at which comments are folded.
const commentWidth = 100

// commentText makes a comment from lines. It ensures that text from foreign files cannot end the comment.
func commentText(lines []string) string {
	var folded []string
	for _, line := range lines {
		visible := strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || !unicode.IsPrint(r) {
				return '?'
			}
			return r
		}, strings.ToValidUTF8(line, "?"))
		indent := visible[:len(visible)-len(strings.TrimLeft(visible, " "))]
		row := indent
		for word := range strings.FieldsSeq(visible) {
			if len(row) > len(indent) && len(row)+1+len(word) > commentWidth {
				folded = append(folded, "# "+row)
				row = indent + "  "
			}
			if strings.TrimSpace(row) != "" {
				row += " "
			}
			row += word
		}
		folded = append(folded, "# "+row)
	}
	return strings.Join(folded, "\n")
}

// visibleName quotes a name that is empty or could be misread.
func visibleName(name string) string {
	if name == "" || strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 {
		return strconv.Quote(name)
	}
	return name
}
