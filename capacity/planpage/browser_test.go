package planpage

import (
	"context"
	"fmt"
	"html"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/capacity/sizing"
	"github.com/millrace/millrace/internal/shared"
)

// browsers are the names of Chromium, as distributions have it.
var browsers = []string{"chromium", "chromium-browser", "google-chrome"}

// checker is a script that lists what does not fit: elements whose text is wider than their box, texts of pictures that
// leave the picture, and texts of a picture that lie on each other. The page itself has no script.
const checker = `<script>
const problems = [];
const name = e => e.tagName + " " + JSON.stringify((e.textContent || "").trim().slice(0, 60));
for (const e of document.querySelectorAll("h1, h2, h3, p, li, th, td, figcaption, span, table, figure, svg")) {
  if (e.closest("svg") && e.tagName !== "svg") continue;
  if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline" && e.tagName !== "svg") {
    problems.push("wider than its box: " + name(e));
  }
  const box = e.getBoundingClientRect();
  const scrolls = e.closest(".wide");
  if (!scrolls && box.right > document.documentElement.clientWidth + 1) problems.push("leaves the page: " + name(e));
}
for (const e of document.querySelectorAll(".wide")) {
  if (window.innerWidth >= 1280 && e.scrollWidth > e.clientWidth + 1) problems.push("is cut off: " + name(e));
}
for (const svg of document.querySelectorAll("svg")) {
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].map(t => [t, t.getBoundingClientRect()]);
  for (const [t, b] of texts) {
    if (b.left < frame.left - 1 || b.right > frame.right + 1 || b.top < frame.top - 1 || b.bottom > frame.bottom + 1) {
      problems.push("leaves its picture: " + name(t));
    }
  }
  for (let i = 0; i < texts.length; i++) for (let j = i + 1; j < texts.length; j++) {
    const [a, x] = texts[i], [b, y] = texts[j];
    const wide = Math.min(x.right, y.right) - Math.max(x.left, y.left);
    const high = Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top);
    if (wide > 2 && high > 4) problems.push("lie on each other: " + name(a) + " and " + name(b));
  }
}
const list = document.createElement("pre");
list.id = "problems";
list.textContent = "checked " + document.querySelectorAll("*").length + "\n" + problems.join("\n");
document.body.append(list);
</script>`

// browse runs the browser over a file, and returns what it prints.
func browse(t *testing.T, browser, file string, width int, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	// Without the sandbox, which root cannot have; the page is this test's own.
	command := exec.CommandContext(ctx, browser, append([]string{"--headless", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", // which is small in containers
		"--hide-scrollbars", "--no-first-run", "--user-data-dir=" + t.TempDir(), fmt.Sprintf("--window-size=%d,2400", width)},
		append(args, "file://"+file)...)...)
	var says strings.Builder
	command.Stderr = &says
	out, err := command.Output()
	require.NoError(t, err, "%s: %s", browser, says.String())
	return string(out)
}

// problemList finds what the checker wrote.
var problemList = regexp.MustCompile(`(?s)<pre id="problems">checked (\d+)\n(.*?)</pre>`)

// TestThePageInABrowser renders pages of several shapes, in a wide window or a narrow one: nothing leaves its box, and
// the picture is not blank. MILLRACE_PLAN_PICTURES names a folder that keeps the pictures, to be looked at.
func TestThePageInABrowser(t *testing.T) {
	browser := ""
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		shared.Missing(t, "no Chromium: install the package chromium to see the page rendered")
	}
	keep := os.Getenv("MILLRACE_PLAN_PICTURES")
	for name, c := range map[string]struct {
		page  string
		width int
	}{
		"rm5": {render(t, "rm5", of500TB), 1280},
		"dpp": {render(t, "dpp-rm1", func(*sizing.Job) {}), 800},
		"long-word": {render(t, "rm3", func(j *sizing.Job) {
			j.T.Source = "a source " + strings.Repeat("withoutaspace", 40)
		}), 800},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, checked := filepath.Join(dir, "page.html"), filepath.Join(dir, "checked.html")
			require.NoError(t, os.WriteFile(file, []byte(c.page), 0o600))
			require.NoError(t, os.WriteFile(checked, []byte(strings.Replace(c.page, "</body>", checker+"</body>", 1)), 0o600))
			dom := browse(t, browser, checked, c.width, "--dump-dom")
			found := problemList.FindStringSubmatch(dom)
			require.NotNil(t, found, "the checker did not run: %.500s", dom)
			assert.Empty(t, html.UnescapeString(found[2]))

			picture := filepath.Join(dir, "page.png")
			if keep != "" {
				picture = filepath.Join(keep, name+".png")
			}
			browse(t, browser, file, c.width, "--screenshot="+picture)
			checkPicture(t, picture, c.width)
		})
	}
}

// checkPicture checks that a picture is as wide as the window, is mostly background, and has ink over its whole height.
func checkPicture(t *testing.T, path string, width int) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	picture, err := png.Decode(f)
	require.NoError(t, err)
	bounds := picture.Bounds()
	assert.Equal(t, width, bounds.Dx())
	const bands = 8
	for band := range bands {
		high := bounds.Dy() / bands
		ink := inked(picture, image.Rect(0, band*high, bounds.Dx(), (band+1)*high))
		assert.Greater(t, ink, 0.002, "band %d of %d is blank", band, bands)
		assert.Less(t, ink, 0.6, "band %d of %d has more ink than page", band, bands)
	}
}

// inked returns the share of a picture's pixels that are not white.
func inked(picture image.Image, part image.Rectangle) float64 {
	n := 0
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			if r, g, b, _ := picture.At(x, y).RGBA(); r < 0xe000 || g < 0xe000 || b < 0xe000 {
				n++
			}
		}
	}
	return float64(n) / float64(part.Dx()*part.Dy())
}
