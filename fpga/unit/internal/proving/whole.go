package proving

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

// Whole fails unless a kernel of a level does all of n values that hold nothing out of the ordinary itself. A kernel
// that hands odd values to the plain path would give the right results, slowly, if it took every value for odd.
func Whole(t *testing.T, l simd.Level, n int, kernel func() (done int)) {
	t.Helper()
	if !slices.Contains(simd.Levels(), l) {
		t.Skipf("this machine offers %v only", simd.Detected())
	}
	if done := kernel(); done != n {
		t.Errorf("the %v kernel does %d of %d values and leaves the rest to the plain path", l, done, n)
	}
}
