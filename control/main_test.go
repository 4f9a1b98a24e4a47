package control

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets more tests run at once than there are processors: they wait for elections most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() != "1" {
		_ = f.Value.Set("6") // setting a number cannot fail
	}
	os.Exit(m.Run())
}
