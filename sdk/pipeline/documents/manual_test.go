package documents

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/sdk/pipeline"
)

// operatorManual returns docs/operators.md, made from the catalogue.
func operatorManual() []byte {
	var b strings.Builder
	b.WriteString(`<!-- Made of fpga/operator and sdk/pipeline by "go generate ./sdk/pipeline". Do not edit. -->

# Operators

A pipeline passes each column through a chain of operators. Every operator has a reference that reads like its
definition, a kernel, and golden vectors; the same bytes come out of every engine. [pipelines.md](pipelines.md) says
how chains are written.

Rules that hold for all of them:

- Integers are int64 inside: unsigned ones are zero-extended, others sign-extended. Booleans are 0 and 1.
- Integers and float64 become float32 (nearest, ties to even) on entering ` + "`log`, `logit`" + `, ` +
		"`box_cox`" + `, a float32
  comparison, or the dense and label tensors. Nothing becomes an integer by itself.
- A NaN is a value and not a null: ` + "`fill_null` and `fill_median`" + ` leave it, ` + "`clamp`, `log`, `logit`" +
		`, ` + "`box_cox`, `normalize`" + `
  and ` + "`min_max`" + ` pass it on, ` + "`bucketize`" + ` has the parameter ` + "`nan`" + `, ` + "`onehot`" +
		` gives it class 0, and ` + "`fill_nan`" + `
  replaces it. One that arrives in a dense feature fails the split, unless the group says ` + "`nan: keep`" + `, and one
  that arrives in the label always does, as an infinity there. Dense features take infinities, which ` + "`clamp`" + `
  bounds. NaN made by arithmetic is 7fc00000h. Operators that only move values keep their bits.
- A uint64 from 2^63 on is an id whose bits count, in hashes, tables and keys; an operator or a tensor that takes it as
  a number fails the split, since an int64 has no such number; ` + "`cast: float64`" + ` takes it.
- Sparse features: a null, or a list with a null element that reaches any operator but ` + "`fill_null`" + `, ` +
		`becomes a list
  of length 0. Dense features and the label have no place for a null: a pipeline that lets one through is refused.
- Scored lists: operators work on the ids, and the scores, which become weights, stay with the ids that are left. ` +
		"`firstx`" + `
  cuts both, and ` + "`ngram`" + ` and ` + "`list_slice`" + ` refuse them; a list with a null among its scores ` +
		`becomes length 0
  before the first operator.

`)
	list := pipeline.Catalogue()
	b.WriteString("| operator | takes | yields | does |\n|---|---|---|---|\n")
	for i := range list {
		o := &list[i]
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s |\n", o.Name, o.Name, cell(o.Takes), cell(o.Yields),
			cell(firstSentence(o.Summary)))
	}
	for i := range list {
		writeOperator(&b, &list[i])
	}
	return []byte(b.String())
}

// cell returns a text as a cell of a table in Markdown, where a bar ends a cell even in code.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func firstSentence(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i+1]
	}
	return s
}

// writeOperator writes the section of an operator.
func writeOperator(b *strings.Builder, o *catalogue.Entry) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n    %s\n\n", o.Name, o.Summary, example(o))
	if len(o.Params) > 0 {
		b.WriteString("| parameter | type | default | |\n|---|---|---|---|\n")
		for i := range o.Params {
			p := &o.Params[i]
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", p.Name, cell(typeText(p)), cell(defaultText(p)), cell(p.Summary))
		}
		b.WriteByte('\n')
	}
	for _, line := range [][2]string{
		{"Takes", o.Takes}, {"Yields", o.Yields}, {"Nulls", o.Nulls}, {"Lists", o.Lists}, {"Errors", o.Errors},
		{"Source", o.Source},
	} {
		fmt.Fprintf(b, "- %s: %s.\n", line[0], line[1])
	}
	if o.Unit != 0 {
		fmt.Fprintf(b, "- Unit: %d, version %d.\n", uint16(o.Unit), o.Unit.Version())
	}
}

// example returns one use of an operator, as YAML.
func example(o *catalogue.Entry) string {
	if len(o.Params) == 0 {
		return "- " + o.Name
	}
	return o.Example
}

func typeText(p *catalogue.Param) string {
	switch {
	case p.Type == catalogue.ParamWords:
		return "list of `" + strings.Join(p.Choices, "`, `") + "`"
	case p.Type == catalogue.ParamChoice:
		return "`" + strings.Join(p.Choices, "`, `") + "`"
	case p.Type == catalogue.ParamInteger && p.Min != catalogue.AnyInteger:
		return fmt.Sprintf("integer, at least %d", p.Min)
	}
	return typeNames[p.Type]
}

func defaultText(p *catalogue.Param) string {
	switch v := p.Default.(type) {
	case catalogue.Number:
		return "`" + strings.TrimSuffix(v.String(), ".0") + "`"
	case catalogue.Text:
		return "`" + string(v) + "`"
	}
	if p.Optional {
		return "none"
	}
	return "must be given"
}

// typeNames are the names of parameters' types in docs/operators.md.
var typeNames = map[catalogue.ParamType]string{
	catalogue.ParamInteger: "integer", catalogue.ParamNumber: "number", catalogue.ParamReal: "real",
	catalogue.ParamBorders: "borders", catalogue.ParamText: "text", catalogue.ParamTable: "table of integers",
	catalogue.ParamTextTable: "table of texts",
}
