package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/contexts"
	"github.com/millrace/millrace/host/identity"
)

// configHome gives the test a folder of configurations of its own.
func configHome(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	return filepath.Join(dir, "millrace", "contexts.yaml")
}

// certified makes an authority and the certificate of an operator.
func certified(t *testing.T, dir string) identity.Options {
	t.Helper()
	require.NoError(t, identity.InitAuthority(dir, "test"))
	o := identity.Options{
		Cert: filepath.Join(dir, "ann.pem"), Key: filepath.Join(dir, "ann.key"),
		CA: filepath.Join(dir, identity.AuthorityCert),
	}
	require.NoError(t,
		identity.Issue(dir, identity.Request{Identity: identity.Identity{Role: identity.Operator, Name: "ann"}}, o.Cert,
			o.Key))
	return o
}

func TestContexts(t *testing.T) {
	path := configHome(t)
	assert.Contains(t, must(t, "context", "list"), "millrace up makes one")
	assert.Contains(t, must(t, "context", "show"), "http://127.0.0.1:7460")
	dir := t.TempDir()
	o := certified(t, dir)
	t.Chdir(dir)
	out := must(t, "context", "add", "prod", "--control", "https://a:1,https://b:1", "--cert", "ann.pem", "--key",
		"ann.key", "--ca", "ca.pem")
	assert.Contains(t, out, "prod (current)", "the first")
	assert.Contains(t, out, o.Cert, "a path is kept whole")
	must(t, "context", "add", "local", "--control", "unix:/run/m.sock")
	assert.Contains(t, must(t, "context", "list"), "*  prod")
	must(t, "context", "use", "local")
	assert.Contains(t, must(t, "context", "list"), "*  local")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	var used usedView
	show := func() usedView {
		require.NoError(t, json.Unmarshal([]byte(must(t, "context", "show", "--output", "json")), &used))
		return used
	}
	assert.Equal(t, "context local", show().ControlFrom)
	t.Setenv(contexts.ContextEnv, "prod")
	assert.Equal(t, "context prod", show().ControlFrom)
	assert.Equal(t, o.Key, used.Key)
	t.Setenv(contexts.ControlEnv, "https://c:1")
	assert.Equal(t, usedView{Control: []string{"https://c:1"}, ControlFrom: contexts.ControlEnv, Cert: o.Cert,
		Key: o.Key, CertFrom: "context prod", CA: o.CA, CAFrom: "context prod"}, show())
	t.Setenv(contexts.ContextEnv, "")
	t.Setenv(contexts.ControlEnv, "")

	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{exitUsage, `no such context: "nobody"; there are local, prod`, []string{"context", "use", "nobody"}},
		{exitUsage, "no such context", []string{"context", "show", "nobody"}},
		{exitUsage, "no such context", []string{"context", "remove", "nobody"}},
		{exitUsage, "no such context", []string{"jobs", "list", "--context", "nobody"}},
		{exitUsage, "1 to 63 of a-z", []string{"context", "add", "https://x", "--control", "unix:/x"}},
		{exitUsage, "name at least one member", []string{"context", "add", "x"}},
		{exitUsage, "wants cert, key and ca", []string{"context", "add", "x", "--control", "https://x:1"}},
		{exitFailed, "give --replace", []string{"context", "add", "prod", "--control", "unix:/x"}},
		{
			exitFailed, "nothing.pem", []string{
				"context", "add", "x", "--control", "https://x:1", "--cert", "nothing.pem", "--key", "ann.key", "--ca",
				"ca.pem",
			},
		},
	} {
		code, _, errs := millrace(t, c.args...)
		assert.Equal(t, c.code, code, "%q: %s", c.args, errs)
		assert.Contains(t, errs, c.want)
	}
	must(t, "context", "add", "local", "--control", "unix:/run/m.sock") // the same again changes nothing
	must(t, "context", "add", "prod", "--control", "unix:/x", "--replace")
	must(t, "context", "remove", "local")
	assert.NotContains(t, must(t, "context", "list"), "*", "none is the current one")

	require.NoError(t, os.WriteFile(path, []byte("{\n\"curent\": \"a\"}"), 0o600))
	code, _, errs := millrace(t, "jobs", "list")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "line 2: there is no field")
}

// TestContextGivesTheAddress: commands that ask a control plane, train among them, ask the one of the context.
func TestContextGivesTheAddress(t *testing.T) {
	configHome(t)
	at := controlRun(t)
	startStub(t, at)
	must(t, "context", "add", "here", "--control", at)
	assert.Contains(t, must(t, "nodes", "list"), "node0")
	code, _, errs := millrace(t, "train", "--pipeline", "rm1", "--rank", "3", "--ranks", "2")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "--rank 3", "it is a job of the service")
	must(t, "context", "add", "nowhere", "--control", "http://127.0.0.1:1", "--use")
	code, _, _ = millrace(t, "nodes", "list", "--patience", "50ms")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, must(t, "nodes", "list", "--context", "here"), "node0")
	t.Setenv(contexts.ControlEnv, at)
	assert.Contains(t, must(t, "nodes", "list"), "node0")
}
