package pipeline

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// TestDefaultsAreValues checks the defaults of parameters as values that a document gives.
func TestDefaultsAreValues(t *testing.T) {
	for _, o := range Catalogue() {
		for _, p := range o.Params {
			if p.Default != nil {
				var none problem.List
				checkValue(&none, &p, p.Default, problem.Place{})
				assert.NoError(t, none.Err(), "the default of %s of %s", p.Name, o.Name)
			}
		}
	}
}
