package planpage

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/millrace/millrace/capacity"
	"github.com/millrace/millrace/capacity/sizing"
)

//go:embed page.html.tmpl
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"figure": figure, "short": short, "words": func(s string) string { return strings.ReplaceAll(s, "_", " ") },
}).Parse(pageText))

// figure writes a number as people read it: whole numbers below a million with all digits, others with four.
func figure(v any) string {
	switch n := v.(type) {
	case int64:
		return fmt.Sprint(n)
	case float64:
		if n == float64(int64(n)) && n < 1e6 && n > -1e6 {
			return fmt.Sprint(int64(n))
		}
		return fmt.Sprintf("%.4g", n)
	default:
		return fmt.Sprint(v)
	}
}

// short writes a number above 0 with four digits and a prefix of its unit: 3 M, 11.95 P.
func short(v float64) string {
	prefixes := []string{"", "k", "M", "G", "T", "P", "E"}
	i := 0
	for ; v >= 999.95 && i < len(prefixes)-1; i++ {
		v /= 1000
	}
	return fmt.Sprintf("%.4g %s", v, prefixes[i])
}

// content is what the page's template takes.
type content struct {
	Drives *capacity.Result
	Plan   *sizing.Report
	// The charts, as SVG. They hold no text that is not escaped.
	Costs, Tornado, Growth template.HTML
}

// Write writes the page of a plan.
func Write(w io.Writer, drives *capacity.Result, plan *sizing.Report) error {
	// The charts are markup of this package, whose texts svg.text escapes.
	return page.Execute(w, content{Drives: drives, Plan: plan, Costs: template.HTML(costs(plan)),
		Tornado: template.HTML(tornado(plan)), Growth: template.HTML(growth(plan))})
}
