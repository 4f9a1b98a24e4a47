package cli

import (
	"runtime/debug"
	"strings"
)

// NextRelease is the version that this tree becomes. The Python package has the same one, and CHANGELOG.md a part for
// it.
const NextRelease = "0.4.0"

// release and commit are the version and the commit that a package gives its binaries (tools/package).
var release, commit string

// Version returns the version and the commit of this binary; a package's binary has the package's version. The commit
// is empty if the binary was built outside a checkout.
func Version() (version, revision string) {
	version, revision = NextRelease+"-devel", commit
	if info, ok := debug.ReadBuildInfo(); ok {
		// The version that Go makes of a commit without a tag says less than NextRelease.
		if v := info.Main.Version; v != "" && v != "(devel)" && !strings.HasPrefix(v, "v0.0.0-") {
			version = v
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && commit == "" {
				revision = s.Value
			}
		}
	}
	if release != "" {
		version = release
	}
	return version, revision
}

// version returns the version of this binary.
func version() string {
	v, _ := Version()
	return v
}

func versionAndCommit() string {
	v, of := Version()
	return v + " " + of
}
