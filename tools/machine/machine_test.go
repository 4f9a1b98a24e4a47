package machine

import (
	"runtime"
	"testing"
)

func TestProcessorIn(t *testing.T) {
	for info, want := range map[string]string{
		"model\t\t: 2\nmodel name\t: AMD EPYC: 9004\n\nmodel name\t: other\n": "AMD EPYC: 9004",
		"processor\t: 0\nCPU part\t: 0xd40\n":                                 runtime.GOARCH, // an arm64 kernel has no name
		"":                                                                    runtime.GOARCH,
	} {
		if got := processorIn(info); got != want {
			t.Errorf("%q has the processor %q, want %q", info, got, want)
		}
	}
}
