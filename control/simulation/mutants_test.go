package simulation

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestMutantsAreFound builds each fault into the world, and runs days until one is broken.
func TestMutantsAreFound(t *testing.T) {
	for _, m := range AllMutants {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			days := 0
			var err error
			for ; err == nil && days < 2_000; days++ {
				_, err = New(uint64(days), Options{Mutants: Mutants{m: true}}).Run(60_000)
			}
			if assert.Error(t, err, "no day of %d shows it", days) {
				t.Logf("found on day %d: %v", days, err)
			}
		})
	}
}
