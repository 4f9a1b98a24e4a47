package contexts

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/wholefile"
)

var (
	// ErrFile says that contexts.yaml cannot be used.
	ErrFile = errors.New("contexts")
	// ErrUnknown says that no context has the name.
	ErrUnknown = errors.New("no such context")
)

// Context says how to call a control plane.
type Context struct {
	Control []string `json:"control"` // members: https://HOST:PORT, http://HOST:PORT or unix:PATH
	Cert    string   `json:"cert"`    // PEM files; all three or none
	Key     string   `json:"key"`
	CA      string   `json:"ca"`
}

// Identity returns the context's PEM files as package identity takes them.
func (c Context) Identity() identity.Options {
	return identity.Options{Cert: c.Cert, Key: c.Key, CA: c.CA}
}

// Equal reports whether two contexts are the same.
func (c Context) Equal(d Context) bool {
	return slices.Equal(c.Control, d.Control) && c.Identity() == d.Identity()
}

// File is the content of contexts.yaml.
type File struct {
	Current  string             `json:"current"` // name of the context that is used when none is named; may be empty
	Contexts map[string]Context `json:"contexts"`
}

// names matches 1 to 63 of a-z, 0-9, dot, underscore and hyphen. No URL matches, so that an argument may be a name or a
// URL.
var names = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)

// CheckName returns an error unless a context may have the name.
func CheckName(name string) error {
	if !names.MatchString(name) {
		return fmt.Errorf("context name %.80q: want 1 to 63 of a-z, 0-9, dot, underscore and hyphen, a letter or "+
			"digit at both ends", name)
	}
	return nil
}

// Check returns an error unless a command can use the context.
func (c Context) Check() error {
	if len(c.Control) == 0 {
		return errors.New("control: name at least one member, as https://HOST:PORT")
	}
	secure := false
	for _, u := range c.Control {
		if _, err := identity.BaseURL(u); err != nil {
			return fmt.Errorf("control: %w", err)
		}
		secure = secure || Secure(u)
	}
	switch set := c.Identity(); {
	case !set.On() && secure:
		return errors.New("an https control plane wants cert, key and ca")
	case set.On() && (set.Cert == "" || set.Key == "" || set.CA == ""):
		return errors.New("cert, key and ca go together: name all three or none")
	}
	return nil
}

// Secure reports whether a member is called over TLS.
func Secure(url string) bool { return strings.HasPrefix(url, "https:") }

// Check returns an error unless every context of the file can be used and the current one exists.
func (f *File) Check() error {
	for _, name := range f.Names() {
		if err := CheckName(name); err != nil {
			return err
		}
		if err := f.Contexts[name].Check(); err != nil {
			return fmt.Errorf("context %s: %w", name, err)
		}
	}
	if _, ok := f.Contexts[f.Current]; !ok && f.Current != "" {
		return fmt.Errorf("current: %w: %q; %s", ErrUnknown, f.Current, f.choices())
	}
	return nil
}

// Names returns the names of the contexts, sorted.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }

// Find returns a context by name. The error wraps ErrUnknown.
func (f *File) Find(name string) (Context, error) {
	c, ok := f.Contexts[name]
	if !ok {
		return c, fmt.Errorf("%w: %q; %s", ErrUnknown, name, f.choices())
	}
	return c, nil
}

// choices lists the names of the contexts, for an error.
func (f *File) choices() string {
	if len(f.Contexts) == 0 {
		return "there are none: millrace up makes one, and so does millrace context add"
	}
	return "there are " + strings.Join(f.Names(), ", ") + " (millrace context list)"
}

// fileName is the file's name in the folder millrace of the user's configurations.
const fileName = "contexts.yaml"

// Path returns where the user's file lies: $XDG_CONFIG_HOME/millrace/contexts.yaml, or
// ~/.config/millrace/contexts.yaml.
func Path(getenv func(string) string) (string, error) {
	// XDG: a path that is not absolute is to be ignored.
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "millrace", fileName), nil
	}
	home := getenv("HOME")
	if home == "" {
		return "", fmt.Errorf("%w: %w: set one, or give --control, --cert, --key and --ca", ErrFile, errHomeless)
	}
	return filepath.Join(home, ".config", "millrace", fileName), nil
}

// Read reads the file. A file that does not exist holds no context. The paths in the result are absolute if path is.
func Read(path string) (*File, error) {
	b, err := wholefile.Read(path, maxFile)
	if errors.Is(err, os.ErrNotExist) {
		return &File{Contexts: map[string]Context{}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	f, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrFile, path, err)
	}
	dir := filepath.Dir(path)
	for name, c := range f.Contexts {
		for _, p := range []*string{&c.Cert, &c.Key, &c.CA} {
			if *p != "" && !filepath.IsAbs(*p) {
				*p = filepath.Join(dir, *p)
			}
		}
		f.Contexts[name] = c
	}
	return f, nil
}

// Bytes returns the file as it is written.
func (f *File) Bytes() ([]byte, error) {
	if f.Contexts == nil {
		f.Contexts = map[string]Context{}
	}
	b, err := json.MarshalIndent(f, "", "  ")
	return append(b, '\n'), err
}
