package strictyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// size is a type of its own, as sizes and durations are.
type size int

func (s size) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%dB", int(s)), nil }
func (s *size) UnmarshalText(b []byte) error {
	if _, err := fmt.Sscanf(string(b), "%dB", (*int)(s)); err != nil {
		return errors.New("want a size, as 5B")
	}
	return nil
}
func (*size) Want() string { return "a size, as 5B" }

type inner struct {
	Name string `yaml:"name" doc:"what it is called"`
	Mode string `yaml:"mode" doc:"how" enum:",fast,slow"`
	Size size   `yaml:"size" doc:"how much"`
}

type outer struct {
	Title  string   `yaml:"title" doc:"a title that has so many words in its description that a line of a hundred columns cannot hold them all at once"`
	On     bool     `yaml:"on" doc:"whether"`
	N      int64    `yaml:"n" doc:"a number"`
	X      float64  `yaml:"x" doc:"a fraction"`
	Words  []string `yaml:"words" doc:"some words"`
	One    inner    `yaml:"one" doc:"one of them"`
	Others []inner  `yaml:"others" doc:"the others"`
}

func defaults() outer {
	return outer{Title: "t: #", N: 3, X: 0.5, One: inner{Name: "i", Size: 7}, Words: []string{"a", "true", ""}}
}

func TestDecodeKeepsWhatIsNotNamed(t *testing.T) {
	for _, empty := range []string{"", "\n# nothing\n", "---\n", "null\n", "{}"} {
		v := defaults()
		require.NoError(t, Decode([]byte(empty), &v), "%q", empty)
		assert.Equal(t, defaults(), v)
	}
	v := defaults()
	require.NoError(t,
		Decode([]byte("on: true\nn: -4\nx: 1e3\none: {size: 9B}\nwords: []\ntitle: 5\nothers:\n  - name: q\n"+
			"    mode: fast\n  - {}\n"), &v))
	assert.Equal(t, outer{Title: "5", On: true, N: -4, X: 1000, Words: []string{}, One: inner{Name: "i", Size: 9},
		Others: []inner{{Name: "q", Mode: "fast"}, {}}}, v)
}

func TestUnknownKeys(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, "null": nil, "[a, b]": nil, "a: [": nil, "on: true\none: {odd: 1}\n": nil,
		"zeta: 1\nalpha: {on: 2}\non: true\n": {"alpha", "zeta"},
	} {
		assert.Equal(t, want, Unknown([]byte(text), new(outer)), "%q", text)
	}
	assert.Nil(t, Unknown(append([]byte("a: "), bytes.Repeat([]byte("b"), MaxBytes)...), new(outer)))
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"titel: x\n": `line 1, column 1: unknown key "titel": want one of title, on, n, x, words, one, ` +
			`others`,
		"n: 1\none:\n  name: a\n  nam: b\n": `line 4, column 3: one: unknown key "nam": want one of name, mode, size`,
		"n: 1\nn: 2\n":                      `line 2, column 1: key "n" is there twice`,
		"n: one\n":                          `line 1, column 4: n: want a whole number, got "one"`,
		"n: '1'\n":                          `line 1, column 4: n: want a whole number, got "1"`,
		"n: 99999999999999999999\n":         "n: want a whole number",
		"n: 1.5\n":                          "n: want a whole number",
		"n:\n":                              "n: want a whole number, got nothing",
		"n: [1]\n":                          "n: want a whole number, got a list",
		"on: yes\n":                         `line 1, column 5: on: want true or false, got "yes"`,
		"x: .nan\n":                         "x: want a number",
		"x: .inf\n":                         "x: want a number",
		"x: infinity\n":                     "x: want a number",
		"title: {a: b}\n":                   "title: want a string, got keys and values",
		"words: a\n":                        `words: want a list, got "a"`,
		"words: [a, [b]]\n":                 "line 1, column 12: words[1]: want a string, got a list",
		"one: []\n":                         "one: want keys and values, got a list",
		"others: [{size: 5}]\n":             "line 1, column 17: others[0].size: want a size, as 5B",
		"others: [{size: }]\n":              "others[0].size: want a size, as 5B, got nothing",
		"one: {mode: quick}\n":              `one.mode: want one of , fast, slow, got "quick"`,
		"title: &a x\nwords: [*a]\n":        "line 1, column 8: title: anchors and aliases are not used here",
		"words: [*a]\n":                     "unknown anchor",
		"n: 1\n---\nn: 2\n":                 "line 2, column 1: a second document begins here",
		"n: 1\n---\n{\n":                    "line",
		"n: {\n":                            "line",
		"[]\n":                              "want keys and values, got a list",
		"? [a]\n: b\n":                      "unknown key",
		strings.Repeat("# x\n", MaxBytes/4) + "#": "at most",
	} {
		v := defaults()
		err := Decode([]byte(text), &v)
		require.Error(t, err, "%.80q", text)
		assert.ErrorContains(t, err, want)
		var e *Error
		assert.ErrorAs(t, err, &e)
	}
}

func TestPrintIsReadBack(t *testing.T) {
	for _, v := range []outer{
		{}, defaults(), {Title: "two\nlines", Words: []string{}, Others: []inner{{Name: "q", Size: 1}, {Mode: "slow"}}},
	} {
		b := Print(v)
		got := outer{Title: "other"}
		require.NoError(t, Decode(b, &got), "%s", b)
		if len(v.Words) == 0 {
			v.Words, got.Words = nil, nil
		}
		if len(v.Others) == 0 {
			v.Others, got.Others = nil, nil
		}
		assert.Equal(t, v, got, "%s", b)
		for line := range strings.Lines(string(b)) {
			assert.LessOrEqual(t, len(line), width+1)
		}
	}
	assert.Contains(t, string(Print(outer{})), "others: []\n#   # what it is called\n#   name: \"\"\n")
}

func TestSchemaDescribesEveryField(t *testing.T) {
	var s map[string]any
	require.NoError(t, json.Unmarshal(Schema("a thing", defaults()), &s))
	assert.Equal(t, "a thing", s["title"])
	assert.Equal(t, false, s["additionalProperties"])
	p := s["properties"].(map[string]any)
	require.Len(t, p, 7)
	assert.Equal(t, "a fraction", p["x"].(map[string]any)["description"])
	assert.Equal(t, 0.5, p["x"].(map[string]any)["default"])
	one := p["one"].(map[string]any)["properties"].(map[string]any)
	assert.Equal(t, []any{"", "fast", "slow"}, one["mode"].(map[string]any)["enum"])
	assert.Equal(t, "7B", one["size"].(map[string]any)["default"])
	items := p["others"].(map[string]any)["items"].(map[string]any)
	assert.Equal(t, "object", items["type"])
}

func TestStructsThatBreakTheRules(t *testing.T) {
	assert.Panics(t, func() {
		_ = Decode([]byte("a: 1"), &struct {
			A int `yaml:"a"`
		}{})
	})
	assert.Panics(t, func() {
		_ = Decode([]byte("a: 1"), &struct {
			A complex64 `yaml:"a" doc:"a"`
		}{})
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("on: true\nn: -4\nx: 1e3\none: {size: 9B}\nwords: [a]\n"))
	f.Add(Print(defaults()))
	f.Fuzz(func(t *testing.T, b []byte) {
		v := defaults()
		unknown := Unknown(b, &v)
		if Decode(b, &v) != nil {
			return
		}
		require.Empty(t, unknown)
		again := outer{}
		require.NoError(t, Decode(Print(v), &again))
		require.Equal(t, Print(v), Print(again))
	})
}

// grouped has the fields of outer, two of them in groups.
type grouped struct {
	Title string `yaml:"title" doc:"a title"`
	group
	X float64 `yaml:"x" doc:"a fraction"`
}

type group struct {
	On    bool `yaml:"on" doc:"whether"`
	inner      // a group of a group
}

// TestEmbeddedStructsGroupFields checks that a document has the fields of an embedded struct among the others, in the
// embedded struct's place.
func TestEmbeddedStructsGroupFields(t *testing.T) {
	v := grouped{Title: "t"}
	require.NoError(t, Decode([]byte("x: 2\nname: n\nsize: 3B\non: true\n"), &v))
	want := grouped{Title: "t", X: 2, group: group{On: true, inner: inner{Name: "n", Size: 3}}}
	assert.Equal(t, want, v)
	again := grouped{}
	require.NoError(t, Decode(Print(v), &again))
	assert.Equal(t, want, again)
	err := Decode([]byte("group: {}\n"), &v)
	require.ErrorContains(t, err, `unknown key "group": want one of title, on, name, mode, size, x`)
	var s map[string]any
	require.NoError(t, json.Unmarshal(Schema("grouped", v), &s))
	assert.Len(t, s["properties"], 6)
	assert.Equal(t, 2.0, s["properties"].(map[string]any)["x"].(map[string]any)["default"])
	assert.Panics(t, func() {
		_ = Print(struct {
			inner
			Name string `yaml:"name" doc:"a key that the group has"`
		}{})
	})
}
