package contexts

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/host/identity"
)

// Environment variables that commands and the Python package know.
const (
	ControlEnv = "MILLRACE_CONTROL" // members of the control plane, separated by commas
	ContextEnv = "MILLRACE_CONTEXT" // name of a context
	CertEnv    = "MILLRACE_CERT"    // PEM files
	KeyEnv     = "MILLRACE_KEY"
	CAEnv      = "MILLRACE_CA"
)

// Flags are what the command line says. A zero field was not given.
type Flags struct {
	Context  string
	Control  []string
	Identity identity.Options
}

// Target says which control plane a command calls, with which identity, and the source of each.
type Target struct {
	Control  []string // nil: nothing names a control plane
	Identity identity.Options
	// Where each part comes from, as "--control", "MILLRACE_CONTROL" or "context local"; empty: from nowhere.
	ControlFrom, CertFrom, CAFrom string
}

// candidate is a source that may name a part of a Target.
type candidate struct {
	from string
	Context
}

// Resolve decides which control plane a command calls, and with which identity. Address, certificate (with its key) and
// authority are each taken from the first source that names them: their flag, the context that --context names, their
// environment variable, the context that MILLRACE_CONTEXT names, the current context. Certificate and authority are
// left out if no member is called over TLS and no flag names them. The error wraps ErrFile or ErrUnknown.
func Resolve(flags Flags, getenv func(string) string) (Target, error) {
	places := []candidate{{"flag",
		Context{Control: flags.Control, Cert: flags.Identity.Cert, Key: flags.Identity.Key, CA: flags.Identity.CA}}}
	if flags.Context != "" {
		c, err := findContext(flags.Context, getenv)
		if err != nil {
			return Target{}, fmt.Errorf("--context: %w", err)
		}
		places = append(places, candidate{"context " + flags.Context, c})
	}
	places = append(places,
		candidate{"environment",
			Context{Control: splitList(getenv(ControlEnv)), Cert: getenv(CertEnv), Key: getenv(KeyEnv),
				CA: getenv(CAEnv)}})
	var t Target
	for _, p := range places {
		t = t.fill(p)
	}
	if flags.Context == "" && !t.complete() { // otherwise contexts.yaml may be in any state
		c, err := defaultContext(getenv)
		if err != nil {
			return Target{}, err
		}
		t = t.fill(c)
	}
	if !slices.ContainsFunc(t.Control, Secure) && !flags.Identity.On() {
		t.Identity, t.CertFrom, t.CAFrom = identity.Options{}, "", ""
	}
	return t, nil
}

// complete reports whether a context could add nothing.
func (t *Target) complete() bool {
	return len(t.Control) > 0 &&
		(!slices.ContainsFunc(t.Control, Secure) || t.Identity.Cert != "" && t.Identity.CA != "")
}

// defaultContext returns the context that is used when no flag names one: that of the environment, or the current one.
func defaultContext(getenv func(string) string) (candidate, error) {
	if name := getenv(ContextEnv); name != "" {
		c, err := findContext(name, getenv)
		if err != nil {
			return candidate{}, fmt.Errorf("%s: %w", ContextEnv, err)
		}
		return candidate{"context " + name, c}, nil
	}
	f, err := load(getenv)
	if errors.Is(err, errHomeless) || err == nil && f.Current == "" {
		return candidate{}, nil // a daemon's environment has no home, and no context
	}
	if err != nil {
		return candidate{}, err
	}
	return candidate{"context " + f.Current, f.Contexts[f.Current]}, nil
}

// fill returns the target with its missing parts taken from a candidate.
func (t Target) fill(p candidate) Target {
	from := func(flag, env string) string {
		switch p.from {
		case "flag":
			return flag
		case "environment":
			return env
		}
		return p.from
	}
	if len(t.Control) == 0 && len(p.Control) > 0 {
		t.Control, t.ControlFrom = p.Control, from("--control", ControlEnv)
	}
	if t.Identity.Cert == "" && t.Identity.Key == "" && (p.Cert != "" || p.Key != "") {
		t.Identity.Cert, t.Identity.Key, t.CertFrom = p.Cert, p.Key, from("--cert and --key", CertEnv+" and "+KeyEnv)
	}
	if t.Identity.CA == "" && p.CA != "" {
		t.Identity.CA, t.CAFrom = p.CA, from("--ca", CAEnv)
	}
	return t
}

// errHomeless says that contexts.yaml has no folder.
var errHomeless = errors.New("neither XDG_CONFIG_HOME nor HOME says where contexts are kept")

// load reads the user's file.
func load(getenv func(string) string) (*File, error) {
	path, err := Path(getenv)
	if err != nil {
		return nil, err
	}
	return Read(path)
}

// findContext returns a context of the user's file by name.
func findContext(name string, getenv func(string) string) (Context, error) {
	f, err := load(getenv)
	if err != nil {
		return Context{}, err
	}
	return f.Find(name)
}

// splitList splits a list at its commas.
func splitList(s string) []string {
	var list []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
