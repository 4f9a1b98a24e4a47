package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl/packaging"
)

// TestImagePackage writes a kernel's folder, and refuses what it cannot write.
func TestImagePackage(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "kernel")
	p := decode[packaging.Package](t, must(t, "image", "package", "--unit", "clamp", "--out", folder, "--output", "json"))
	assert.Equal(t, "millrace_clamp", p.Kernel)
	assert.Equal(t, []int{8, 8}, []int{p.InputBeat, p.OutputBeat})
	assert.Contains(t, p.Registers,
		packaging.Register{Name: "unit_least", Offset: 0x80008, Bytes: 8, About: "the least value"})
	assert.Contains(t, p.Files, "kernel.xml")
	assert.LessOrEqual(t, p.ClockKHz, uint32(223_000))
	for _, name := range p.Files {
		text, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		assert.NotEmpty(t, text)
	}

	code, _, errs := millrace(t, "image", "package", "--unit", "clamp", "--out", folder)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "the folder is not empty")

	empty := t.TempDir()
	table := must(t, "image", "package", "--unit", "lane", "--out", empty)
	assert.Contains(t, table, "table presence")
	assert.True(t, strings.Contains(table, "beats of 64 and 16 bytes"), table)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	code, _, _ = millrace(t, "image", "package", "--unit", "clamp", "--out", file)
	assert.Equal(t, exitFailed, code)
}
