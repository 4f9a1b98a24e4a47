package documents

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestThePictureIsItsDescription: docs/picture.svg is what Draw makes of Overview, and README shows it.
func TestThePictureIsItsDescription(t *testing.T) {
	goldenfile.Text(t, "../../docs/picture.svg", Draw(Overview()))
	assert.True(t, strings.Contains(read(t, "README.md"), "](docs/picture.svg)"),
		"README.md does not show docs/picture.svg")
}

// TestThePictureIsWhole: it is XML, and no box, arrow or text reaches out of it.
func TestThePictureIsWhole(t *testing.T) {
	p := Overview()
	d := xml.NewDecoder(strings.NewReader(Draw(p)))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	inside := func(x, y int) bool { return x >= 0 && y >= 0 && x <= p.Width && y <= p.Height }
	for _, b := range p.Boxes {
		assert.True(t, inside(b.X, b.Y) && inside(b.X+b.Width, b.Y+b.Height), b.Title)
		assert.LessOrEqual(t, 38+18*(len(b.Lines)-1), b.Height, "%s: its lines need more height", b.Title)
		assert.LessOrEqual(t, 10+8*len(b.Title), b.Width, "%s: its title needs more width", b.Title)
		for _, l := range b.Lines {
			assert.LessOrEqual(t, 10+13*len(l)/2, b.Width, "%s: %q needs more width", b.Title, l)
		}
	}
	for _, a := range p.Arrows {
		assert.True(t, inside(a.FromX, a.FromY) && inside(a.ToX, a.ToY), a.Text)
	}
	assert.Equal(t, "a&lt;b&amp;&quot;c&quot;&gt;", escape(`a<b&"c">`))
}
