package site

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfTheRecord holds up.json and the file of a daemon's process: `millrace up` and `millrace down` of a later
// version read what this one wrote.
func TestFormOfTheRecord(t *testing.T) {
	keep := func(path string, v any) {
		b, err := json.MarshalIndent(v, "", "  ")
		require.NoError(t, err)
		goldenfile.Text(t, path, string(b)+"\n")
	}
	keep("testdata/up.json", record{
		MadeBy: madeBy, Version: "v1.2.3", Control: DefaultControl, Node: DefaultNode, DriveSize: DefaultDriveSize,
		Context:  DefaultContext,
		Contexts: "/home/ann/.config/millrace/contexts.yaml", Operator: "ann", Systemd: true, Before: "far",
	})
	keep("testdata/process.json", process{PID: 4711, Began: "boot 5", Command: []string{"millrace", "control", "run"}})
}
