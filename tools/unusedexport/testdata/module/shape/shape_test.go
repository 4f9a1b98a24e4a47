package shape

import "testing"

func TestTested(t *testing.T) {
	if Tested() != 1 {
		t.Fail()
	}
}
