package documents

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/sdk/pipeline"
)

// pythonOperators returns sdk/python/src/millrace/operators.py, made from the catalogue: one function an operator, for
// pipelines that are built in Python. The functions check nothing that Parse checks.
func pythonOperators() []byte {
	var b strings.Builder
	b.WriteString(`# Made of fpga/operator and sdk/pipeline by "go generate ./sdk/pipeline". Do not edit.
"""The operators of feature pipelines, one function each; see docs/operators.md of the repository.

Each function returns an :class:` + "`" + `~millrace.pipeline.Operator` + "`" + ` for the ` + "``ops``" + ` of a group
of :class:` + "`" + `~millrace.pipeline.Pipeline` + "`" + `. An ` + "``int``" + ` is a whole number, exact to 64 bits; a
` + "``float``" + ` is a real number, which columns of integers refuse.
"""

from __future__ import annotations

from typing import Literal, Mapping, Sequence, Union

from .operation import LogSpaced, Operator, given

Number = Union[int, float]
Borders = Union[Sequence[Number], LogSpaced]
Table = Union[Mapping[int, int], Sequence[int]]
TextTable = Mapping[str, int]

`)
	list := pipeline.Catalogue()
	b.WriteString("__all__ = [\n")
	for i := range list {
		fmt.Fprintf(&b, "    %q,\n", list[i].Name)
	}
	b.WriteString("]\n")
	for i := range list {
		writePython(&b, &list[i])
	}
	return []byte(b.String())
}

// writePython writes the function of an operator.
func writePython(b *strings.Builder, o *catalogue.Entry) {
	var parameters, passed, reserved, defaults []string
	for i := range o.Params {
		p := &o.Params[i]
		hint := pythonType(p)
		switch {
		case p.Required():
		case p.Default != nil:
			hint += " = " + pythonDefault(p)
			defaults = append(defaults, fmt.Sprintf("%q: %s", p.Name, pythonDefault(p)))
		default:
			hint = "Union[" + hint + ", None] = None"
		}
		if i == 1 && o.Params[0].Required() {
			parameters = append(parameters, "*") // what follows the main parameter is given by name
		}
		name := pythonName(p.Name)
		parameters = append(parameters, name+": "+hint)
		if name == p.Name {
			passed = append(passed, p.Name+"="+p.Name)
		} else {
			reserved = append(reserved, fmt.Sprintf("**{%q: %s}", p.Name, name))
		}
	}
	passed = append(passed, reserved...)
	if len(parameters) > 0 && !o.Params[0].Required() {
		parameters = append([]string{"*"}, parameters...)
	}
	fmt.Fprintf(b, "\n\ndef %s(%s) -> Operator:\n", o.Name, strings.Join(parameters, ", "))
	doc := []string{pythonText(o.Summary), ""}
	doc = append(doc, pythonText("Takes "+o.Takes+"; yields "+o.Yields+". Nulls: "+o.Nulls+"."))
	if len(o.Params) > 0 {
		doc = append(doc, "", "Args:")
		for i := range o.Params {
			doc = append(doc, "    "+pythonName(o.Params[i].Name)+": "+pythonText(o.Params[i].Summary))
		}
	}
	for i, line := range doc {
		if i == 0 {
			line = `"""` + line
		}
		writePythonLines(b, line)
	}
	b.WriteString("    \"\"\"\n")
	if len(defaults) > 0 {
		passed = append([]string{"{" + strings.Join(defaults, ", ") + "}"}, passed...)
	}
	writePythonLines(b, fmt.Sprintf("return Operator(%q, given(%s))", o.Name, strings.Join(passed, ", ")))
}

// pythonName returns the name of a parameter: a word that Python reserves has an underscore behind it.
func pythonName(name string) string {
	if name == "in" {
		return "in_"
	}
	return name
}

// pythonText turns Markdown's code into reStructuredText's.
func pythonText(s string) string { return strings.ReplaceAll(s, "`", "``") }

// writePythonLines writes a line of a docstring, folded at 120 columns.
func writePythonLines(b *strings.Builder, line string) {
	if line == "" {
		b.WriteByte('\n')
		return
	}
	indent := "    " + line[:len(line)-len(strings.TrimLeft(line, " "))]
	row := indent
	for i, word := range strings.Fields(line) {
		if i > 0 && len(row)+1+len(word) > 120 {
			b.WriteString(row + "\n")
			row = indent + word
			if strings.TrimLeft(line, " ") != line {
				row = indent + "    " + word
			}
			continue
		}
		if i > 0 {
			row += " "
		}
		row += word
	}
	b.WriteString(row + "\n")
}

func pythonType(p *catalogue.Param) string {
	switch p.Type {
	case catalogue.ParamInteger:
		return "int"
	case catalogue.ParamChoice:
		return `Literal["` + strings.Join(p.Choices, `", "`) + `"]`
	case catalogue.ParamBorders:
		return "Borders"
	case catalogue.ParamText:
		return "str"
	case catalogue.ParamTable:
		return "Table"
	case catalogue.ParamTextTable:
		return "TextTable"
	case catalogue.ParamWords:
		return `Sequence[Literal["` + strings.Join(p.Choices, `", "`) + `"]]`
	}
	return "Number"
}

func pythonDefault(p *catalogue.Param) string {
	switch v := p.Default.(type) {
	case catalogue.Number:
		return strings.TrimSuffix(v.String(), ".0")
	case catalogue.Text:
		return fmt.Sprintf("%q", string(v))
	}
	return "None"
}
