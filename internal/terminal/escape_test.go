package terminal

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEscape(t *testing.T) {
	for s, want := range map[string]string{
		"":                           "",
		"a\tb\nc":                    "a\tb\nc",
		"Größe, 列, 🚀":                "Größe, 列, 🚀",
		"\x1b[2Jgone":                `\x1b[2Jgone`,
		"bell\a, \x7f, \u009b31m":    `bell\a, \x7f, \u009b31m`,
		"not text \xff\xfe":          `not text \xff\xfe`,
		"turned \u202etxt.exe":       `turned \u202etxt.exe`,
		"replaced \ufffd stays":      "replaced \ufffd stays",
		"back\\slash stays\r":        `back\slash stays\r`,
		"cut in the middle \xe2\x82": `cut in the middle \xe2\x82`,
	} {
		assert.Equal(t, want, Escape(s))
	}
	assert.Equal(t, "plain name", Cell("plain name"))
	assert.Equal(t, `"a\nb\tc"`, Cell("a\nb\tc"))
}
