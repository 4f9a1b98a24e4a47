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

// MissingSimulator ends a test for which the tools are missing that make simulators of units in SystemVerilog, as err
// says. It skips the test. With CI=true or MILLRACE_RTL_SIM=require it fails the test.
func MissingSimulator(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("MILLRACE_RTL_SIM") == "require" {
		t.Fatal(err)
	}
	Missing(t, "%v", err)
}
