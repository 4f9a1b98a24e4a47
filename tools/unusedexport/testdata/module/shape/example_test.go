package shape_test

import (
	"testing"

	"example.net/module/shape"
)

func Example() { shape.Shown() }

func TestAlone(t *testing.T) { t.Log(shape.Alone) }
