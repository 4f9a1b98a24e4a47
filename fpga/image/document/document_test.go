package document

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock/stocktest"
	"github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
)

func TestADocumentOfAnImageBuildsItAgain(t *testing.T) {
	want := stocktest.Parsed(t)
	want.Spec.User = []byte("<hello>")
	want.Spec.Resources = image.Resources{Tool: "yosys", Version: "0.23", Units: []image.ResourceLine{{Unit: 3, LUTs: 9}}}
	bytesOf := func(s *image.Spec) []byte {
		b, err := image.Build(s)
		require.NoError(t, err)
		return b
	}
	text, err := json.MarshalIndent(Of(&want.Spec), "", "  ")
	require.NoError(t, err)
	s, err := Read(text, 99)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(bytesOf(&want.Spec), bytesOf(s)), "byte for byte")
}

// TestADocumentHoldsTheMostModules writes the document of an image with the most bytes of modules, and reads it.
func TestADocumentHoldsTheMostModules(t *testing.T) {
	want := stocktest.Parsed(t)
	for n := range byte(4) {
		module := wasmtest.Module{Functions: []wasmtest.Function{{Name: "f", Params: []byte{wasmtest.I64},
			Results: []byte{wasmtest.I64}, Code: wasmtest.Get(0)}}}.Bytes()
		rest := image.MaxModulesBytes/4 - len(module) - 4 // a custom section, whose length takes three bytes
		module = append(wasmtest.Unsigned(append(module, 0), uint64(rest)), make([]byte, rest)...)
		module[len(module)-1] = n
		want.Spec.AddModule(image.Module{Name: string('a' + rune(n)), Bytes: module})
	}
	built, err := image.Build(&want.Spec)
	require.NoError(t, err)
	text, err := json.MarshalIndent(Of(&want.Spec), "", "  ")
	require.NoError(t, err)
	s, err := Read(text, 0)
	require.NoError(t, err)
	again, err := image.Build(s)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(built, again), "byte for byte")
}

func TestBase(t *testing.T) {
	m := stocktest.Parsed(t)
	s, err := Read([]byte("base: stock\n"), 5)
	require.NoError(t, err)
	assert.EqualValues(t, 5, s.Time, "the caller's time")
	s.Time = m.Spec.Time
	assert.Equal(t, &m.Spec, s)

	s, err = Read([]byte("time: 7\nmemories:\n  - {name: slm, type: ddr4, base: 1, size: "+
		"0x2}\nbase: stock\nbuild: {tool: t}\nuser: aGk=\n"), 5)
	require.NoError(t, err)
	assert.EqualValues(t, 7, s.Time)
	assert.Equal(t, []image.Memory{{Name: "slm", Type: "ddr4", Base: 1, Size: 2}}, s.Memories,
		"replaced whole, wherever the base stands")
	assert.Equal(t, image.BuildInfo{Tool: "t"}, s.Build)
	assert.Equal(t, []byte("hi"), s.User)
	assert.Equal(t, m.Spec.Units, s.Units)

	s, err = Read([]byte("platform: p\nunits: [{number: 1, name: u, version: 1}]\nselftest: stock\n"), 0)
	require.NoError(t, err)
	assert.Equal(t, m.Spec.SelfTest, s.SelfTest)
	assert.Empty(t, s.Kernels)
}

func TestDocumentsThatAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"":                                    "empty",
		"- 1\n":                               "line 1: want keys and values",
		"base: other\n":                       "line 1: base: \"other\": want stock",
		"colour: red\n":                       "line 1: unknown key \"colour\"",
		"platform: a\nplatform: b\n":          "line 2: platform: is there twice",
		"units: 3\n":                          "line 1: units: want a list",
		"units:\n  - {number: 70000}\n":       "line 2: units[0]: ",
		"units:\n  - {lane: 1}\n":             "line 2: units[0]: unknown field \"lane\"",
		"units:\n  - {Lanes: 1}\n":            "line 2: units[0]: unknown key \"Lanes\"",
		"clocks:\n  - name: a\n    name: b\n": "line 3: clocks[0]: name is there twice",
		"partition: {slots: -1}\n":            "line 1: partition: ",
		"interface: xyz\n":                    "line 1: interface: ",
		"time: soon\n":                        "line 1: time: ",
		"user: '!'\n":                         "line 1: user: ",
		"platform: &a x\n":                    "anchors",
		"platform: x\n---\nplatform: y\n":     "follows",
		"platform: [\n":                       "image document: ",
		"build: " + strings.Repeat("[", 40):   "image document: ",
		strings.Repeat("#", MaxBytes+1):       "at most",
		"partition: " + strings.Repeat("{a: ", 20) + strings.Repeat("}", 20): "deep",
	} {
		_, err := Read([]byte(text), 0)
		var e *Error
		require.ErrorAs(t, err, &e, "%.60q", text)
		assert.Contains(t, err.Error(), says, "%.60q", text)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("base: stock\nclocks: [{name: kernel, granted_khz: 1}]\nuser: aGk=\n"))
	f.Add([]byte("base: stock\n" + parametersText))
	text, err := json.Marshal(Document{Platform: "p", Units: []image.Unit{{Number: 1, Name: "u", Version: 1}}})
	require.NoError(f, err)
	f.Add(text)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Read(b, 1)
		if err != nil {
			return
		}
		built, err := image.Build(s)
		if err != nil {
			return
		}
		m, err := image.Parse(built)
		require.NoError(t, err, "what is built is parsed")
		again, err := json.Marshal(Of(&m.Spec))
		require.NoError(t, err)
		s, err = Read(again, 2)
		require.NoError(t, err)
		rebuilt, err := image.Build(s)
		require.NoError(t, err)
		require.Equal(t, built, rebuilt)
	})
}
