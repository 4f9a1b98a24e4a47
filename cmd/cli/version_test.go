package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestVersionOfAPackage shows that the version and the commit of a package take precedence over those of the build.
func TestVersionOfAPackage(t *testing.T) {
	t.Cleanup(func(r, k string) func() { return func() { release, commit = r, k } }(release, commit))
	release, commit = "1.2.3", "0123456789ab"
	assert.Equal(t, "1.2.3 0123456789ab", versionAndCommit())
	assert.Equal(t, "millrace 1.2.3", VersionLine())
}
