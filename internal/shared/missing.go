package shared

import (
	"os"
	"testing"
)

// Missing skips a test that this machine cannot run, for want of a right or a program. With CI=true, where nothing may
// be missing, it fails the test.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
