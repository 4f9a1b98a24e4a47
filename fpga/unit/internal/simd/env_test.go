package simd

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The variable is read by a process of its own, since it is read once.
func TestTheVariableIsRead(t *testing.T) {
	if os.Getenv("MILLRACE_CPU_CHILD") != "" {
		t.Logf("level in use: %v. variant in use: %v.", Current(), CurrentVariant())
		return
	}
	command := []string{os.Args[0]}
	for _, name := range []string{"qemu-aarch64", "qemu-aarch64-static"} {
		// Where QEMU runs this process, the operating system may be unable to start the program without QEMU.
		if qemu, err := exec.LookPath(name); err == nil && runtime.GOARCH == "arm64" {
			command = []string{qemu, os.Args[0]}
		}
	}
	for _, wish := range []string{"", "generic", "avx2", "avx512", "avx512-products",
		"avx512-shifts", "neon", "typo"} {
		cmd := exec.Command(command[0], append(command[1:], "-test.run=^TestTheVariableIsRead$", "-test.v")...)
		cmd.Env = append(os.Environ(), "MILLRACE_CPU_CHILD=1", Variable+"="+wish)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		want := lowered(Detected(), wish)
		require.True(t, strings.Contains(string(out), "level in use: "+want.String()+"."), "%q: %s", wish, out)
		variant, ok := variantOf(wish)
		if !ok {
			variant = fitting(processor())
		}
		require.True(t, strings.Contains(string(out), "variant in use: "+variant.String()+"."), "%q: %s", wish, out)
	}
}
