// Package machine names the machine on which a tool measured something.
package machine

import (
	"os"
	"runtime"
	"strings"
)

// Processor returns the name of this machine's processor as the kernel has it, or the architecture where the kernel has
// no name.
func Processor() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	return processorIn(string(b))
}

// processorIn returns the first model name of /proc/cpuinfo.
func processorIn(info string) string {
	for line := range strings.Lines(info) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
