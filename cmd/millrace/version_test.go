package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/sdk/tensor"
)

// TestVersion holds the table form, which scripts read, and the JSON form, which names every format.
func TestVersion(t *testing.T) {
	fields := strings.Split(strings.TrimSuffix(must(t, "version"), "\n"), " ")
	require.GreaterOrEqual(t, len(fields), 3)
	assert.Equal(t, "millrace", fields[0])
	assert.Equal(t, buildVersion().Version, fields[1])

	var v versionInfo
	require.NoError(t, json.Unmarshal([]byte(must(t, "version", "--output", "json")), &v))
	assert.Equal(t, buildVersion(), v)
	assert.Equal(t, v.Commit, v.Revision)
	assert.Equal(t, wire.Major, int(v.Formats.Program[0]-'0'))
	assert.Equal(t, tensor.FrameFormat4, v.Formats.Frame)
	formats := reflect.ValueOf(v.Formats)
	for i := range formats.NumField() {
		assert.NotEmpty(t, formats.Field(i).String(), formats.Type().Field(i).Name)
	}
}

// TestOneVersion checks that the command, the Python package and the newest part of CHANGELOG.md have one version.
func TestOneVersion(t *testing.T) {
	assert.Equal(t, "millrace "+buildVersion().String()+"\n", must(t, "--version"))
	python, err := os.ReadFile("../../sdk/python/src/millrace/__init__.py")
	require.NoError(t, err)
	assert.Contains(t, string(python), "\n__version__ = \""+cli.NextRelease+"\"\n")
	changes, err := os.ReadFile("../../CHANGELOG.md")
	require.NoError(t, err)
	_, parts, _ := strings.Cut(string(changes), "\n## ")
	assert.True(t, strings.HasPrefix(parts, cli.NextRelease+" "), "the newest part of CHANGELOG.md is of another version")
}
