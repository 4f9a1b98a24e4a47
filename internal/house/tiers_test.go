package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// runTiers runs a script that has sourced .ci/tiers, as .ci/test does, and returns what it printed, its folder and its
// error.
func runTiers(t *testing.T, body string, env ...string) (out, folder string, err error) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	require.NoError(t, err, "`make test` is a script of bash")
	tiers, err := filepath.Abs(filepath.Join(root, ".ci", "tiers"))
	require.NoError(t, err)
	folder = t.TempDir()
	cmd := exec.Command(bash, "-c", "set -euo pipefail\n. "+tiers+"\ntiers_begin "+folder+"\n"+body+"\ntiers_end\n")
	cmd.Env = append(os.Environ(), append([]string{"CI="}, env...)...)
	b, err := cmd.CombinedOutput()
	return string(b), folder, err
}

// table returns the last lines of what tiers printed: the names in order, and each one's result.
func table(t *testing.T, out string) (names []string, results map[string]string) {
	t.Helper()
	head := strings.LastIndex(out, "\ntier ")
	require.GreaterOrEqual(t, head, 0, out)
	row := regexp.MustCompile(`^(.{22}) (passed|failed|missing) +(\d+) +(\d+)( .*)?$`)
	results = map[string]string{}
	lines := strings.Split(strings.TrimSuffix(out[head+1:], "\n"), "\n")
	require.Equal(t, []string{"tier", "result", "seconds", "processor"}, strings.Fields(lines[0]))
	for _, line := range lines[1:] {
		m := row.FindStringSubmatch(line)
		require.NotNil(t, m, line)
		names = append(names, strings.TrimSpace(m[1]))
		results[strings.TrimSpace(m[1])] = m[2]
	}
	return names, results
}

// TestEveryTierRuns checks that a tier that fails hides no other, that the table lists all tiers and names those that
// failed, and that the status is not 0 then.
func TestEveryTierRuns(t *testing.T) {
	out, folder, err := runTiers(t, `
inner() { echo begun; false; echo "a function went on behind a command that failed"; }
tier first echo "ok  	package 1"
tier broken bash -c 'printf "%b\n" "--- FAIL: TestThis (0.00s)" FAIL "FAIL\tpackage 0.1s"; exit 7'
tier function inner
missing absent "install it"
forbidden veth "be root"
tier "two words" echo last
tier again tiers_passed first
tier also tiers_passed broken
`)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 1, exit.ExitCode())
	names, results := table(t, out)
	assert.Equal(t, []string{"first", "broken", "function", "absent", "veth", "two words", "again", "also"}, names)
	assert.Equal(t, map[string]string{"first": "passed", "broken": "failed", "function": "failed", "absent": "missing",
		"veth":      "missing",
		"two words": "passed", "again": "passed", "also": "failed"}, results)
	assert.Contains(t, out, "\nok  \tpackage 1\n", "what go test says is there as it is")
	assert.NotContains(t, out, "went on")
	assert.Contains(t, out, "tier broken failed; all that it printed: "+folder+
		"/broken.log\n1:--- FAIL: TestThis (0.00s)\n3:FAIL\tpackage 0.1s\n")
	assert.Contains(t, out, "tier function failed; all that it printed: "+folder+"/function.log\nbegun\n")
	kept, err := os.ReadFile(filepath.Join(folder, "two-words.log"))
	require.NoError(t, err)
	assert.Equal(t, "last\n", string(kept))
}

// TestAMissingTier checks that a missing tier is a failure with CI=true and no failure without, and that a tier that
// is not permitted never is a failure.
func TestAMissingTier(t *testing.T) {
	out, _, err := runTiers(t, `tier one true; missing two "no such tool"`)
	require.NoError(t, err, out)
	assert.True(t, strings.HasSuffix(out, "  no such tool\n"), "the reason stands in the table: %s", out)
	out, _, err = runTiers(t, `tier one true; missing two "no such tool"`, "CI=true")
	require.Error(t, err, out)
	assert.Contains(t, out, "CI=true: a missing tier is a failure")
	_, results := table(t, out)
	assert.Equal(t, map[string]string{"one": "passed", "two": "missing"}, results)
	out, _, err = runTiers(t, `tier one true; forbidden three "be root"`, "CI=true")
	require.NoError(t, err, out)
}

// TestTiersBesideOthers checks that a tier beside others runs while they do, that what it prints stays together behind
// theirs, and that it fails as other tiers do, also when it is killed.
func TestTiersBesideOthers(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	out, folder, err := runTiers(t, `
mkfifo `+fifo+`
meets() { echo "begins beside"; cat `+fifo+`; }
broken() { echo before; false; echo "went on"; }
beside "two words" meets
beside broken broken
tier first bash -c 'echo "from the first" >`+fifo+`'
collect
beside late bash -c 'kill -9 "$PPID"'
tier second echo second
`)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, out)
	assert.Equal(t, 1, exit.ExitCode())
	names, results := table(t, out)
	assert.Equal(t, []string{"first", "two words", "broken", "second", "late"}, names)
	assert.Equal(t, map[string]string{"first": "passed", "two words": "passed", "broken": "failed",
		"second": "passed", "late": "failed"}, results)
	assert.Contains(t, out, "\n== tier two words, which ran beside others\nbegins beside\nfrom the first\n")
	assert.Contains(t, out, "tier broken failed; all that it printed: "+folder+"/broken.log\nbefore\n")
	assert.NotContains(t, out, "went on")
	assert.Contains(t, out, "tier late failed; all that it printed: "+folder+"/late.log\nit was killed\n")
}

// TestAbandonedTiersEnd checks that an interrupted script leaves no process of its tiers running.
func TestAbandonedTiersEnd(t *testing.T) {
	dir := t.TempDir()
	// The tier's child holds the far end of a pipe open as long as it runs.
	out, _, err := runTiers(t, `
cd `+dir+`
mkfifo pipe never
beside waits bash -c 'exec 3>pipe; echo open >&3; read -r word <>never'
exec 4<pipe
read -r word <&4
tiers_abandon
timeout 60 cat <&4
echo "the pipe is $word and has ended"
`)
	require.Error(t, err, out)
	assert.Contains(t, out, "the pipe is open and has ended")
	_, results := table(t, out)
	assert.Equal(t, map[string]string{"waits": "failed"}, results)
}
