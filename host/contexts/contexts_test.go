package contexts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/identity"
)

const whole = `{
  "current": "local",
  "contexts": {
    "local": {"control": ["https://127.0.0.1:7460"], "cert": "/p/c.pem", "key": "/p/c.key", "ca": "/p/ca.pem"},
    "plain": {"control": ["http://127.0.0.1:7460", "unix:/run/m.sock"]}
  }
}
`

func TestParse(t *testing.T) {
	f, err := Parse([]byte(whole))
	require.NoError(t, err)
	assert.Equal(t, &File{Current: "local", Contexts: map[string]Context{
		"local": {Control: []string{"https://127.0.0.1:7460"}, Cert: "/p/c.pem", Key: "/p/c.key", CA: "/p/ca.pem"},
		"plain": {Control: []string{"http://127.0.0.1:7460", "unix:/run/m.sock"}},
	}}, f)
	b, err := f.Bytes()
	require.NoError(t, err)
	again, err := Parse(b)
	require.NoError(t, err)
	assert.Equal(t, f, again)
}

func TestParseRefusesWithTheLine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "line 1: the file ends too early"},
		"cut":           {"{\n  \"current\": \"a\"", "line 2: the file ends too early"},
		"yaml":          {"current: local\n", "line 1: invalid character 'c'"},
		"line's end":    {"{\n\"current\": \"a\n", "line 2: invalid character '\\n'"},
		"list":          {"[]", "line 1: the file: want an object"},
		"number":        {"{\n\n\"current\": 7}", "line 3: want a text in quotes"},
		"unknown field": {"{\n\"curent\": \"a\"}", `line 2: there is no field "curent"`},
		"twice":         {"{\"current\": \"\",\n\"current\": \"\"}", `line 2: "current" comes twice`},
		"context twice": {"{\"contexts\": {\n\"a\": {\"control\": [\"unix:a\"]},\n\"a\": {}}}",
			`line 3: "a" comes twice`},
		"field of context": {"{\"contexts\": {\"a\": {\n\n\"url\": 1}}}", `line 3: context a: there is no field "url"`},
		"name":             {"{\"contexts\": {\n\"https://a\": {}}}", "line 2: context name"},
		"control a text":   {"{\"contexts\": {\"a\": {\n\"control\": \"unix:a\"}}}", "line 2: want a list"},
		"control a number": {"{\"contexts\": {\"a\": {\n\"control\": [\n1]}}}", "line 3: want a text"},
		"trailing":         {"{}\n{}", "line 2: something follows"},
		"no control":       {`{"contexts": {"a": {}}}`, "context a: control: name at least one"},
		"bad url":          {`{"contexts": {"a": {"control": ["ftp://x"]}}}`, "context a: control: url"},
		"https in clear":   {`{"contexts": {"a": {"control": ["https://x:1"]}}}`, "wants cert, key and ca"},
		"two of three":     {`{"contexts": {"a": {"control": ["http://x:1"], "ca": "b"}}}`, "go together"},
		"current": {`{"current": "b", "contexts": {"a": {"control": ["unix:a"]}}}`,
			`no such context: "b"; there are a`},
		"not UTF-8": {"{\"current\": \"\xff\"}", "not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.text))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("{}"))
	f.Add([]byte(`{"contexts": {"a": {"control": ["unix:\u0000"]}}, "current": "a"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Parse(b)
		if err != nil {
			assert.NotEmpty(t, err.Error())
			return
		}
		out, err := file.Bytes()
		require.NoError(t, err)
		again, err := Parse(out)
		require.NoError(t, err, "%s", out)
		require.Equal(t, file, again)
	})
}

func TestReadKnowsTheFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "contexts.yaml")
	f, err := Read(path)
	require.NoError(t, err, "a file that is not there holds none")
	assert.Empty(t, f.Names())
	require.NoError(t, os.WriteFile(path,
		[]byte(`{"contexts": {"a": {"control": ["https://x:1"], "cert": "c.pem", "key": "/k", "ca": "d/ca.pem"}}}`), 0o600))
	f, err = Read(path)
	require.NoError(t, err)
	dir := filepath.Dir(path)
	assert.Equal(t, identity.Options{Cert: dir + "/c.pem", Key: "/k", CA: dir + "/d/ca.pem"},
		f.Contexts["a"].Identity())
	require.NoError(t, os.WriteFile(path, []byte("{\n]"), 0o600))
	_, err = Read(path)
	require.ErrorIs(t, err, ErrFile)
	require.ErrorContains(t, err, path+": line 2")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat(" ", maxFile)), 0o600))
	_, err = Read(path)
	require.ErrorContains(t, err, "ends too early", "at the bound it is read")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat(" ", maxFile+1)), 0o600))
	_, err = Read(path)
	require.ErrorContains(t, err, "more than")
}

func TestUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config", "millrace", "contexts.yaml")
	var wg sync.WaitGroup
	for i := range 8 { // none of those that change it at once is lost
		wg.Add(1)
		go func() {
			defer wg.Done()
			assert.NoError(t, Update(path, func(f *File) error {
				f.Contexts[fmt.Sprintf("c%d", i)] = Context{Control: []string{"unix:/s"}}
				return nil
			}))
		}()
	}
	wg.Wait()
	f, err := Read(path)
	require.NoError(t, err)
	assert.Len(t, f.Names(), 8)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	folder, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), folder.Mode().Perm())

	require.Error(t, Update(path, func(f *File) error { f.Current = "nobody"; return nil }))
	require.NoError(t, Update(path, func(*File) error { return nil }))
	after, err := os.Stat(path)
	require.NoError(t, err)
	assert.True(t, os.SameFile(info, after), "what changes nothing, or fails, leaves the file")
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.partial"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestResolve(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "millrace", "contexts.yaml")
	require.NoError(t, Update(path, func(f *File) error {
		f.Current = "one"
		f.Contexts["one"] = Context{Control: []string{"https://one:1"}, Cert: "/1c", Key: "/1k", CA: "/1a"}
		f.Contexts["two"] = Context{Control: []string{"https://two:1"}, Cert: "/2c", Key: "/2k", CA: "/2a"}
		f.Contexts["plain"] = Context{Control: []string{"http://plain:1"}}
		return nil
	}))
	one := identity.Options{Cert: "/1c", Key: "/1k", CA: "/1a"}
	two := identity.Options{Cert: "/2c", Key: "/2k", CA: "/2a"}
	for name, c := range map[string]struct {
		flags Flags
		env   map[string]string
		at    string
		from  string
		id    identity.Options
	}{
		"the current one": {at: "https://one:1", from: "context one", id: one},
		"the environment's context": {env: map[string]string{ContextEnv: "two"}, at: "https://two:1",
			from: "context two", id: two},
		"a flag before the environment": {flags: Flags{Context: "one"},
			env: map[string]string{ContextEnv: "two",
				ControlEnv: "http://env:1"}, at: "https://one:1", from: "context one", id: one},
		"an address before a context": {env: map[string]string{ControlEnv: "https://env:1", ContextEnv: "two"},
			at: "https://env:1", from: ControlEnv, id: two},
		"the flag before all": {flags: Flags{Control: []string{"https://flag:1"}},
			env: map[string]string{ControlEnv: "http://env:1"}, at: "https://flag:1", from: "--control", id: one},
		"an address and a context": {flags: Flags{Control: []string{"https://flag:1"}, Context: "two"},
			at: "https://flag:1", from: "--control", id: two},
		"files by flags": {flags: Flags{Identity: identity.Options{CA: "/fa"}}, at: "https://one:1",
			from: "context one", id: identity.Options{Cert: "/1c", Key: "/1k", CA: "/fa"}},
		"files by the environment": {env: map[string]string{CertEnv: "/ec", KeyEnv: "/ek"}, at: "https://one:1",
			from: "context one", id: identity.Options{Cert: "/ec", Key: "/ek", CA: "/1a"}},
		"no files in clear": {flags: Flags{Control: []string{"http://flag:1"}}, at: "http://flag:1",
			from: "--control"},
		"files in clear when flags say": {flags: Flags{Control: []string{"http://flag:1"}, Identity: two},
			at: "http://flag:1", from: "--control", id: two},
		"a context in clear": {flags: Flags{Context: "plain"}, at: "http://plain:1", from: "context plain"},
		"a certificate without its key": {flags: Flags{Identity: identity.Options{Cert: "/fc"}}, at: "https://one:1",
			from: "context one", id: identity.Options{Cert: "/fc", CA: "/1a"}},
		"an empty environment is silent": {env: map[string]string{ControlEnv: " , "}, at: "https://one:1",
			from: "context one", id: one},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Resolve(c.flags, func(k string) string {
				if k == "XDG_CONFIG_HOME" {
					return home
				}
				return c.env[k]
			})
			require.NoError(t, err)
			assert.Equal(t, []string{c.at}, got.Control)
			assert.Equal(t, c.from, got.ControlFrom)
			assert.Equal(t, c.id, got.Identity)
		})
	}
	none := func(string) string { return "" }
	got, err := Resolve(Flags{}, none)
	require.NoError(t, err, "a daemon without a home uses no context")
	assert.Empty(t, got)
	_, err = Resolve(Flags{Context: "one"}, none)
	require.ErrorContains(t, err, "neither XDG_CONFIG_HOME nor HOME")
	env := func(k string) string { return map[string]string{"XDG_CONFIG_HOME": home}[k] }
	_, err = Resolve(Flags{Context: "three"}, env)
	require.ErrorIs(t, err, ErrUnknown)
	require.ErrorContains(t, err, "there are one, plain, two")

	require.NoError(t, os.WriteFile(path, []byte("current: one\n"), 0o600))
	_, err = Resolve(Flags{}, env)
	require.ErrorContains(t, err, "line 1")
	_, err = Resolve(Flags{Control: []string{"https://a:1"}}, env)
	require.ErrorContains(t, err, "line 1", "the context would have said the certificate")
	_, err = Resolve(Flags{Control: []string{"http://a:1"}}, env)
	require.NoError(t, err, "the file is not wanted")
	_, err = Resolve(Flags{Control: []string{"https://a:1"}, Identity: one}, env)
	require.NoError(t, err, "the file is not wanted")
}

func TestPath(t *testing.T) {
	for home, want := range map[string]string{"": "/h/.config/millrace/contexts.yaml",
		"/x": "/x/millrace/contexts.yaml", "relative": "/h/.config/millrace/contexts.yaml"} {
		got, err := Path(func(k string) string { return map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": home}[k] })
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}
