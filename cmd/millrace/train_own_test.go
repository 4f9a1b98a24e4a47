package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/node"
)

// securePlane is a control plane and a node whose identities millrace pki has issued.
type securePlane struct {
	t    *testing.T
	pki  string
	url  string
	data string // the folder of the partitions that the node holds
}

func startSecurePlane(t *testing.T, rows string) *securePlane {
	t.Helper()
	p := &securePlane{t: t, pki: filepath.Join(t.TempDir(), "pki")}
	must(t, "pki", "init", "--dir", p.pki)
	p.url = controlRun(t, p.issue("control", "control-0", "127.0.0.1")...)
	require.True(t, strings.HasPrefix(p.url, "https://"), p.url)
	drive, data := filledDrive(t, rows)
	p.data = data
	id := p.issue("node", "n0", "127.0.0.1")
	serveDriveAs(t, p.url, drive, node.TLSConfig{Cert: id[1], Key: id[3], CA: id[5]}, p.issue("operator", "ann")...)
	return p
}

// issue issues a certificate and returns the flags that name it.
func (p *securePlane) issue(role, name string, hosts ...string) []string {
	p.t.Helper()
	args := []string{"pki", "issue", "--dir", p.pki, "--role", role, "--name", name}
	for _, h := range hosts {
		args = append(args, "--host", h)
	}
	must(p.t, args...)
	stem := filepath.Join(p.pki, role+"-"+name)
	return []string{"--cert", stem + ".pem", "--key", stem + ".key", "--ca", filepath.Join(p.pki, "ca.pem")}
}

// train returns the arguments of a job whose splits are shared with the rank's own CPUs.
func (p *securePlane) train(name string, more ...string) []string {
	return append([]string{"train", "--control", p.url, "--trainer-rows-per-second", "1e6", "--measure", "10ms",
		"--output", "json", "--progress", "none", "--pipeline", "rm1", "--batch", "100", "--split-batches", "1",
		"--name",
		name,
		"--offload", "0.5", "--local", p.data}, more...)
}

// TestALaunchersCertificateIsEnoughToShare types what a user of a cluster with mutual TLS types: certificates of
// millrace pki, a control plane, a node, and train with a share of its own CPUs and no certificate but the launcher's.
// Two ranks, on two hosts of one owner, share the job.
func TestALaunchersCertificateIsEnoughToShare(t *testing.T) {
	p := startSecurePlane(t, "6000")
	launcher := p.issue("launcher", "ads.gpu-0", "127.0.0.1")
	sibling := p.issue("launcher", "ads.gpu-1", "127.0.0.1")
	type report struct {
		Rows int `json:"rows"`
	}
	second := make(chan string, 1)
	go func() {
		var out, errs bytes.Buffer
		args := p.train("shared", append([]string{"--ranks", "2", "--rank", "0", "--run", "one"}, launcher...)...)
		code := run(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		if code != exitDone {
			out.WriteString(errs.String())
		}
		second <- out.String()
	}()
	awaitJSON(t, func(v jobView) bool { return len(v.Ranks) == 2 && v.Ranks[0].Attached },
		append([]string{"jobs", "show", "--control", p.url, "shared"}, launcher...)...)
	out := must(t, append([]string{"train", "--control", p.url, "--job", "shared", "--rank", "1", "--run", "one",
		"--local", p.data, "--trainer-rows-per-second", "1e6", "--measure", "10ms", "--output", "json", "--progress",
		"none"},
		sibling...)...)
	var ranks [2]report
	require.NoError(t, json.Unmarshal([]byte(out), &ranks[1]))
	out = <-second
	require.NoError(t, json.Unmarshal([]byte(out), &ranks[0]), out)
	assert.Equal(t, [2]report{{3000}, {3000}}, ranks)
	var v jobView
	require.NoError(t, json.Unmarshal([]byte(must(t, append([]string{"jobs", "show", "--control", p.url, "shared",
		"--output", "json"}, launcher...)...)), &v))
	assert.Equal(t, "ads", v.Owner)
	assert.InDelta(t, 30, float64(v.SplitsOwn), 6, "half of 60, of which some may come back")

	for name, c := range map[string]struct {
		name     string
		identity []string
		want     string
	}{
		"a launcher without a host": {"bare", p.issue("launcher", "ads.bare"),
			"--role launcher --name NAME --host HOST"},
		"an operator": {"operator", p.issue("operator", "ops"), "needs one of the role launcher"},
	} {
		code, _, errs := millrace(t, p.train("unshared-"+c.name, c.identity...)...)
		assert.Equal(t, exitFailed, code, name)
		assert.Contains(t, errs, c.want, name)
	}
}

// TestALauncherCannotServeAnothersJob checks that a worker for somebody else's job, or for a job without an owner, ends
// with the control plane's refusal, which says what to do; and that the job goes on.
func TestALauncherCannotServeAnothersJob(t *testing.T) {
	p := startSecurePlane(t, "2000")
	ads, news := p.issue("launcher", "ads", "127.0.0.1"), p.issue("launcher", "news", "127.0.0.1")
	operator := p.issue("operator", "ops")
	submit := func(name string, by []string) string {
		var v jobView
		out := must(t, append([]string{"jobs", "submit", "--control", p.url, "--pipeline", "rm1", "--batch", "100",
			"--name", name, "--offload", "0.5", "--output", "json"}, by...)...)
		require.NoError(t, json.Unmarshal([]byte(out), &v), out)
		return v.ID
	}
	theirs, open := submit("theirs", ads), submit("open", operator)
	for job, want := range map[string]string{
		theirs: "news has no job",
		open:   "have the launcher submit the job, or an operator with --owner news",
	} {
		var out, errs lineLog
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		code := run(ctx, append([]string{"worker", "run", "--control", p.url, "--serves", job + "/0", "--local",
			p.data}, news...), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		require.NoError(t, ctx.Err(), "it ends by itself")
		cancel()
		assert.Equal(t, exitFailed, code)
		assert.Contains(t, errs.String(), "permission_denied: own worker refused: launcher/news registers")
		assert.Contains(t, errs.String(), want)
	}
	// A rank of an operator's job shares nothing under the launcher's certificate, and says why.
	code, _, errs := millrace(t, append([]string{"train", "--control", p.url, "--job", open, "--local", p.data,
		"--trainer-rows-per-second", "1e6", "--measure", "10ms", "--progress", "none"}, news...)...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "has no owner")
	out := must(t, append([]string{"jobs", "show", "--control", p.url, theirs, "--output", "json"}, ads...)...)
	var v jobView
	require.NoError(t, json.Unmarshal([]byte(out), &v))
	assert.Contains(t, []string{"measuring", "running"}, v.State, "P of the node's drive may still be measured")
	assert.Zero(t, v.SplitsOwn)
}
