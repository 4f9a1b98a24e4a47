package planpage

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/capacity"
	"github.com/millrace/millrace/capacity/sizing"
)

// render returns the page of a model's plan, after a change of its job.
func render(t *testing.T, model string, change func(*sizing.Job)) string {
	t.Helper()
	prices, err := capacity.ReadPrices(capacity.DefaultPrices())
	require.NoError(t, err)
	table, err := sizing.NewTable(nil)
	require.NoError(t, err)
	j, err := sizing.JobOf(model, 8)
	require.NoError(t, err)
	if j.T.Value == 0 {
		j.T = sizing.Figure{Value: 3e6, Kind: sizing.Assumed, Source: "a test"}
	}
	change(j)
	drives, err := capacity.Plan(capacity.Need{Model: model, T: j.T.Value, Bytes: j.Bytes.Value,
		BytesPerRow: j.RowIn.Value}, prices)
	require.NoError(t, err)
	placements, err := sizing.Plan(j, table, prices)
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, Write(&b, drives, placements))
	return b.String()
}

// of500TB gives a job 500 TB of data.
func of500TB(j *sizing.Job) {
	j.Bytes = sizing.Figure{Value: 5e14, Kind: sizing.Assumed, Source: "a test"}
}

// parse reads a page as XML, and returns the names of its elements and the values of its attributes.
func parse(t *testing.T, page string) (elements map[string]int, attributes []xml.Attr) {
	t.Helper()
	elements = make(map[string]int)
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return elements, attributes
		}
		require.NoError(t, err, "the page is not well formed")
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
			attributes = append(attributes, e.Attr...)
		}
	}
}

// references are what makes a browser fetch something.
var references = regexp.MustCompile(`(?i)https?:|//[a-z]|url\(|@import|javascript:|data:`)

// TestPagesAreWellFormedAndSelfContained: pages of every shape a plan has parse as XML, and refer to nothing.
func TestPagesAreWellFormedAndSelfContained(t *testing.T) {
	for name, page := range map[string]string{
		"rm5":        render(t, "rm5", of500TB),
		"dpp":        render(t, "dpp-rm1", func(*sizing.Job) {}),
		"no data":    render(t, "rm1", func(*sizing.Job) {}),
		"fits none":  render(t, "rm5", func(j *sizing.Job) { j.Trainers = 1 }),
		"no figures": render(t, "rm3", func(j *sizing.Job) { j.Drive, j.Card = sizing.Rates{}, sizing.Rates{} }),
	} {
		elements, attributes := parse(t, page)
		assert.Equal(t, 3, elements["svg"], name)
		for _, e := range []string{"script", "link", "img", "iframe", "object", "embed", "base", "form", "a"} {
			assert.Zero(t, elements[e], "%s: <%s>", name, e)
		}
		for _, a := range attributes {
			assert.NotContains(t, []string{"src", "href", "srcset", "action", "data", "background"}, a.Name.Local, name)
			assert.False(t, strings.HasPrefix(a.Name.Local, "on"), "%s: %s runs a script", name, a.Name.Local)
		}
		assert.Empty(t, references.FindString(page), name)
		assert.NotContains(t, page, "NaN", name)
		assert.NotContains(t, page, "Inf", name)
		assert.NotContains(t, page, "ZgotmplZ", name)
	}
}

// TestPageShowsThePlan: the page has the verdict, every placement, every figure with its source, and the kinds.
func TestPageShowsThePlan(t *testing.T) {
	page := render(t, "rm5", of500TB)
	for _, want := range []string{
		"In storage loses: $313091", "163 drives hold the data", "drives: capacity", "pool of CPU workers, our kernels",
		"does not fit: the front ends of 5 training nodes are needed", "csd.usd", "PreSto VI-C", "<b>2</b> measured",
		"@media print", "never: below 0", "As T grows", "network in",
	} {
		assert.Contains(t, page, want)
	}
}

// TestForeignTextIsEscaped: a source comes from a file that somebody wrote.
func TestForeignTextIsEscaped(t *testing.T) {
	page := render(t, "rm5", func(j *sizing.Job) { j.T.Source = `<script>alert("x")</script> & more` })
	elements, _ := parse(t, page)
	assert.Zero(t, elements["script"])
	assert.Contains(t, page, "&lt;script&gt;alert(")
	s := newSVG(1, 1, `"<b>`)
	s.text(0, 0, "end", "<i>&")
	assert.Equal(t, `<svg viewBox="0 0 1 1" role="img" aria-label="&#34;&lt;b&gt;">`+
		`<text x="0.0" y="0.0" text-anchor="end">&lt;i&gt;&amp;</text></svg>`, s.finish())
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 163: "163", -12: "-12", 0.25: "0.25", 3e6: "3e+06", 2.5: "2.5"} {
		assert.Equal(t, want, figure(v))
	}
	for v, want := range map[float64]string{0: "0 ", 999: "999 ", 999.94: "999.9 ", 999.96: "1 k", 3e6: "3 M",
		11.95e15: "11.95 P", 5e14: "500 T", 1e24: "1e+06 E"} {
		assert.Equal(t, want, short(v))
	}
	assert.Equal(t, "7", figure(int64(7)))
	assert.Equal(t, "x", figure("x"))
	for v, want := range map[float64]string{0: "$0", 999: "$999", 1000: "$1 k", -2.5e6: "-$2.5 M", 4e12: "$4e+03 G"} {
		assert.Equal(t, want, dollars(v))
	}
}

func TestScale(t *testing.T) {
	linear := scale{low: 0, high: 10, from: 100, to: 200}
	assert.InDelta(t, 100, linear.at(0), 1e-9)
	assert.InDelta(t, 150, linear.at(5), 1e-9)
	decades := scale{low: 1, high: 100, from: 0, to: 10, logarithmic: true}
	assert.InDelta(t, 5, decades.at(10), 1e-9)
	assert.InDelta(t, 7, scale{low: 3, high: 3, from: 7, to: 9}.at(3), 1e-9, "a range without a width")
}

func TestWriteReturnsTheWritersError(t *testing.T) {
	assert.Error(t, Write(brokenWriter{}, &capacity.Result{}, &sizing.Report{}))
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
