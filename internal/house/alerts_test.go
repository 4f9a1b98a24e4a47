package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var metricName = regexp.MustCompile(`\bmillrace_[a-z_]+`)

// TestAlerts holds docs/alerts.yaml to the metrics that there are, and docs/operations.md to the alerts.
func TestAlerts(t *testing.T) {
	var source strings.Builder
	for _, file := range []string{
		"host/node/metrics/metrics.go", "host/node/metrics/devices.go", "host/exposition/exposition.go",
		"control/metrics.go",
	} {
		b, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		source.Write(b)
	}
	known := func(metric string) bool {
		for _, suffix := range []string{"", "_bucket"} {
			name := strings.TrimSuffix(metric, suffix)
			for _, prefix := range []string{"", "millrace_", "millrace_node_"} {
				if strings.HasPrefix(name, prefix) &&
					strings.Contains(source.String(), `"`+strings.TrimPrefix(name, prefix)+`"`) {
					return true
				}
			}
		}
		return false
	}
	b, err := os.ReadFile(filepath.Join(root, "docs/alerts.yaml"))
	require.NoError(t, err)
	var doc struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	require.NoError(t, yaml.Unmarshal(b, &doc))
	manual, err := os.ReadFile(filepath.Join(root, "docs/operations.md"))
	require.NoError(t, err)
	alerts := 0
	for _, g := range doc.Groups {
		for _, r := range g.Rules {
			alerts++
			names := metricName.FindAllString(r.Expr, -1)
			assert.True(t, len(names) > 0 || strings.Contains(r.Expr, "process_"), r.Alert)
			for _, n := range names {
				assert.True(t, known(n), "%s looks at %s, which nothing exports", r.Alert, n)
			}
			assert.Contains(t, string(manual), "### "+r.Alert+"\n", "docs/operations.md says nothing of it")
		}
	}
	assert.Greater(t, alerts, 10)
	assert.False(t, known("millrace_no_such_thing"))
}
