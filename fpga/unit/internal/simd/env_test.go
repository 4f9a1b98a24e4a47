package simd

import (
	"os"
	"os/exec"
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
	for _, wish := range []string{"", "generic", "avx2", "avx512", "avx512-products",
		"avx512-shifts", "typo"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTheVariableIsRead$", "-test.v")
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
