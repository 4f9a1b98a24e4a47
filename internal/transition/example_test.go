package transition_test

import (
	"fmt"

	"github.com/millrace/millrace/internal/transition"
)

func Example() {
	lamp := transition.Table[string, string]{
		"off":    {"switch": "on"},
		"on":     {"switch": "off", "burn out": "broken"},
		"broken": {},
	}
	state := "off"
	for _, event := range []string{"switch", "burn out", "switch"} {
		next, ok := lamp.Next(state, event)
		fmt.Println(state, event, next, ok)
		if ok {
			state = next
		}
	}
	fmt.Println(lamp.Final(state))
	// Output:
	// off switch on true
	// on burn out broken true
	// broken switch  false
	// true
}
