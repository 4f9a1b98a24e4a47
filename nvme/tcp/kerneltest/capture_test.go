package kerneltest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme/tcp/kerneltest/guest"
	"github.com/millrace/millrace/nvme/tcp/tracetest"
)

// sessions are the traces of a kernel, each with the number of connections that it must have.
var sessions = map[string]int{"plain": 3, "digests": 3, "no-flow-control": 3, "discover": 1}

// TestCapture records the bytes that the kernels send to Millrace's target, and holds the beginning of each
// association against the golden traces: up to the controller's enabling, a kernel of a series does the same for
// ever. MILLRACE_UPDATE=1 keeps what was recorded.
func TestCapture(t *testing.T) {
	for _, kernel := range guest.Kernels(t) {
		t.Run(kernel, func(t *testing.T) {
			t.Parallel()
			drive := startTarget(t, 512)
			dir := t.TempDir()
			functions := drive.functions()
			functions["record"] = func(args []string) (string, error) {
				if len(args) == 0 || args[0] == "" {
					return "", drive.tell("record")
				}
				return "", drive.tell("record " + filepath.Join(dir, args[0]))
			}
			result := guest.Boot(t, guest.Options{
				Kernel: kernel, Programs: hostPrograms, Modules: hostModules, Files: library(t),
				Env: drive.env(), Host: functions, Script: script(t, "millrace", "capture"),
			})
			result.Subtests(t, "plain", "digests", "no-flow-control", "discover")
			golden, err := tracetest.Golden()
			require.NoError(t, err)
			for session, conns := range sessions {
				text, err := os.ReadFile(filepath.Join(dir, session))
				require.NoError(t, err)
				got, err := tracetest.Read(text)
				require.NoError(t, err)
				assert.Equal(t, conns, connections(got), session)
				name := "linux-" + kernel + "-" + session
				if os.Getenv("MILLRACE_UPDATE") == "1" {
					head := fmt.Sprintf("# What a host sent to our target: %s\n", strings.TrimSpace(result.Uname))
					require.NoError(t, os.WriteFile("../trace/testdata/"+name+".txt", append([]byte(head), text...), 0o644))
					continue
				}
				require.Contains(t, golden, name, "record it with MILLRACE_UPDATE=1")
				assert.Equal(t, opening(golden[name]), opening(got), session)
			}
		})
	}
}

func connections(pdus []tracetest.PDU) int {
	seen := map[int]bool{}
	for _, p := range pdus {
		seen[p.Conn] = true
	}
	return len(seen)
}

// opening is what the first connection sends until the controller is enabled.
func opening(pdus []tracetest.PDU) (lines []string) {
	for _, p := range pdus {
		if p.Conn != 0 {
			break
		}
		lines = append(lines, p.What)
		if strings.HasPrefix(p.What, "Property Set") && strings.HasSuffix(p.What, "1") {
			break
		}
	}
	return lines
}
