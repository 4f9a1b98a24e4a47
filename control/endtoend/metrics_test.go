package endtoend

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/exposition"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/trainmgr/remote"
)

// exported adds the metrics of an exposition: labels by name.
func exported(to map[string]map[string]bool, text string) {
	series := regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? `)
	label := regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="`)
	for line := range strings.Lines(text) {
		m := series.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if to[m[1]] == nil {
			to[m[1]] = map[string]bool{}
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			to[m[1]][l[1]] = true
		}
	}
}

var (
	quoted   = regexp.MustCompile(`"[^"]*"`)
	named    = regexp.MustCompile(`\b(?:millrace|process|go)_[a-z0-9_]+`)
	grouped  = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
	selected = regexp.MustCompile(`([a-z0-9_]+)\{([^}]*)\}`)
	matched  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
)

// unknown returns the metrics and labels of a query that nothing exports. Prometheus adds the label instance itself.
func unknown(query string, have map[string]map[string]bool) (problems []string) {
	bare := quoted.ReplaceAllString(query, `""`)
	labels := map[string]bool{"instance": true}
	outside := grouped.ReplaceAllString(bare, "")
	for _, m := range selected.FindAllStringSubmatch(outside, -1) {
		for _, l := range matched.FindAllStringSubmatch(m[2], -1) {
			if !have[m[1]][l[1]] {
				problems = append(problems, "label "+l[1]+" of "+m[1])
			}
		}
	}
	names := named.FindAllString(outside, -1)
	if len(names) == 0 {
		problems = append(problems, "no metric")
	}
	for _, n := range names {
		if have[n] == nil {
			problems = append(problems, "metric "+n)
		}
		for l := range have[n] {
			labels[l] = true
		}
	}
	for _, m := range grouped.FindAllStringSubmatch(bare, -1) {
		for l := range strings.SplitSeq(m[1], ",") {
			if l = strings.TrimSpace(l); !labels[l] {
				problems = append(problems, "label "+l)
			}
		}
	}
	if strings.Count(bare, "(") != strings.Count(bare, ")") || strings.Count(bare, "{") != strings.Count(bare, "}") {
		problems = append(problems, "brackets that do not match")
	}
	return problems
}

func TestUnknownIsFound(t *testing.T) {
	have := map[string]map[string]bool{}
	exported(have, "# HELP x\nmillrace_a{drive=\"d0\",le=\"1\"} 5\nmillrace_b 1\n")
	for query, want := range map[string]int{
		`sum by (drive, instance) (rate(millrace_a{drive=~"a|b"}[5m])) / millrace_b`: 0,
		`sum by (node) (millrace_a)`: 1,
		`millrace_a{node="x"}`:       1,
		`millrace_none > 1`:          1,
		`millrace_b{drive="d0"}`:     1,
		`sum(millrace_b`:             1,
		`time()`:                     1,
	} {
		assert.Len(t, unknown(query, have), want, query)
	}
}

// TestQueriesOfDashboardAndAlerts: each names metrics and labels that a control plane and a node with a running job
// export.
func TestQueriesOfDashboardAndAlerts(t *testing.T) {
	data := files(t, 700, 401)
	s := startControl(t, controlOptions(t.TempDir()))
	a := startNode(t, nodeConfig("n0", []string{s.URL()}, makeDrive(t, "file", data)), node.Options{Version: "1.2.3"})
	defer func() { assert.NoError(t, a.Close()) }()
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	st, err := c.Submit(t.Context(), &apiv1.JobSpec{Pipeline: []byte(document), Plan: plan(), TRowsPerSecond: 1000})
	require.NoError(t, err)
	j, err := c.Attach(t.Context(), st.Id, remote.AttachOptions{})
	require.NoError(t, err)
	n := 0
	for _, err := range j.MiniBatches(t.Context()) {
		require.NoError(t, err)
		if n++; n == 6 {
			break
		}
	}
	require.NoError(t, j.Flush(t.Context()))
	// a job that there is not
	resp, err := http.Get(a.URLs()[0] + "/v1/minibatch?epoch=0&drive=d0&number=0&until=1&job=" + strings.Repeat("0",
		64))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())

	have := map[string]map[string]bool{}
	for _, url := range []string{s.URL(), a.URLs()[0]} {
		resp, err := http.Get(url + "/metrics")
		require.NoError(t, err)
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, errors.Join(err, resp.Body.Close()))
		require.Equal(t, http.StatusOK, resp.StatusCode)
		exported(have, string(b))
	}
	require.NoError(t, j.Close())
	require.Contains(t, have, "millrace_build_info")
	// With TLS there are certificates.
	dir := t.TempDir()
	require.NoError(t, identity.InitAuthority(dir, "test"))
	o := identity.Options{Cert: filepath.Join(dir, "o.pem"), Key: filepath.Join(dir, "o.key"), CA: filepath.Join(dir,
		identity.AuthorityCert)}
	require.NoError(t, identity.Issue(dir, identity.Request{Identity: identity.Identity{Role: identity.Operator,
		Name: "o"}}, o.Cert, o.Key))
	r := prometheus.NewRegistry()
	_, err = exposition.Register(r, exposition.Options{Identity: o})
	require.NoError(t, err)
	families, err := r.Gather()
	require.NoError(t, err)
	for _, f := range families {
		have[f.GetName()] = map[string]bool{}
		for _, l := range f.GetMetric()[0].GetLabel() {
			have[f.GetName()][l.GetName()] = true
		}
	}
	// This test has no drives behind the kernel; host/node tests their metrics.
	have["millrace_nvme_command_seconds_bucket"] = map[string]bool{"controller": true, "queue": true, "opcode": true,
		"le": true}

	queries := map[string]string{}
	b, err := os.ReadFile("../../docs/dashboard.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(b, &dashboard))
	for _, p := range dashboard.Panels {
		for _, q := range p.Targets {
			queries[p.Title+": "+q.Expr] = q.Expr
		}
	}
	require.Greater(t, len(queries), 20)
	b, err = os.ReadFile("../../docs/alerts.yaml")
	require.NoError(t, err)
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	require.NoError(t, yaml.Unmarshal(b, &alerts))
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			queries[r.Alert] = r.Expr
		}
	}
	require.Greater(t, len(queries), 40)
	for name, q := range queries {
		assert.Empty(t, unknown(q, have), name)
	}
}
