package endtoend

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/remote"
)

// launcherEnv names the variable that holds, as JSON, the task of a launcher in a process of its own. The launcher
// runs this test binary too.
const launcherEnv = "MILLRACE_TEST_LAUNCHER"

// launcher is the task of a launcher.
type launcher struct {
	Control, Job, Run string
	Rank              uint32
	Resume            bool
	Token             []byte
	Save              int    // the mini-batch after which it takes a checkpoint, from 1; 0: none
	At                int    // the mini-batch that it has in hand when it ends; 0: all
	Ending            string // of endings
}

// endings that let the launcher make its acknowledgements durable, and endings that do not.
var (
	softEndings = []string{"break and close", "break and exit", "panic", "cancel", "acknowledge", "return"}
	hardEndings = []string{"kill", "exit in the loop"}
)

// launch is a launcher: it prints each mini-batch that it gets on a line, and ends as its task says.
func launch(told string) int {
	var o launcher
	if err := json.Unmarshal([]byte(told), &o); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	failed := func(err error) int {
		if p := (*remote.PartlyConsumedError)(nil); errors.As(err, &p) {
			fmt.Println("refused", p.Delivered)
		}
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	client, err := remote.Dial(remote.Options{Control: []string{o.Control}, Patience: time.Minute})
	if err != nil {
		return failed(err)
	}
	defer func() { _ = client.Close() }()
	job, err := client.Attach(ctx, o.Job, remote.AttachOptions{Rank: o.Rank, Run: o.Run, Resume: o.Resume,
		Token: o.Token, QueueBytes: 100_000})
	if err != nil {
		return failed(err)
	}
	n := 0
	for mb, err := range job.MiniBatches(ctx) {
		if err != nil {
			fmt.Println("ended")
			return failed(err)
		}
		fmt.Println("given", mb.Name.Epoch, mb.Name.Number)
		if n++; n == o.Save {
			if err := job.Acknowledge(mb.Name); err != nil {
				return failed(err)
			}
			token, err := job.Checkpoint(ctx)
			if err != nil {
				return failed(err)
			}
			fmt.Println("saved", hex.EncodeToString(token))
		}
		if n != o.At {
			continue
		}
		switch o.Ending {
		case "panic":
			panic("the step failed")
		case "cancel":
			cancel() // and it asks for the next one
			continue
		case "acknowledge":
			if err := job.Acknowledge(mb.Name); err != nil {
				return failed(err)
			}
		case "return":
			return 0
		case "kill":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case "exit in the loop":
			os.Exit(0)
		}
		if o.Ending == "break and exit" || o.Ending == "acknowledge" {
			break
		}
		if o.Ending == "break and close" {
			break
		}
	}
	if o.Ending == "break and close" || o.At == 0 {
		if err := job.Close(); err != nil {
			return failed(err)
		}
	}
	return 0
}

// launched is the output of a launcher.
type launched struct {
	given   []string // EPOCH/NUMBER
	saved   int      // the number of them that its token counts
	token   []byte
	refused bool
	errs    string
}

func (o launcher) run(t testing.TB) launched {
	t.Helper()
	told, err := json.Marshal(o)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), launcherEnv+"="+string(told))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the test draws how it ends
	require.NoError(t, ctx.Err(), "it hangs:\n%s%s", out.String(), errs.String())
	var l launched
	for line := range strings.Lines(out.String()) {
		f := strings.Fields(line)
		switch f[0] {
		case "given":
			l.given = append(l.given, f[1]+"/"+f[2])
		case "saved":
			l.saved = len(l.given)
			l.token, err = hex.DecodeString(f[1])
			require.NoError(t, err)
		case "refused":
			l.refused = true
		}
	}
	l.errs = errs.String()
	return l
}

// TestAnyEndingAndAnotherRun ends a launcher in any way at any point and runs it again. If the second run resumes, it
// gets every mini-batch once; otherwise it gets all of them, or an error. No mini-batch is lost without an error.
func TestAnyEndingAndAnotherRun(t *testing.T) {
	data := files(t, 700, 401)
	s, c := oneNode(t, data)
	const epochs, each = 2, 14 + 9
	var all []string
	for e := range epochs {
		for n := range each {
			all = append(all, fmt.Sprintf("%d/%d", e, n))
		}
	}
	rng := rand.New(rand.NewPCG(4, 2))
	seed := uint64(0)
	submit := func(ranks uint32) string {
		seed++ // a digest of its own
		st, err := c.Submit(t.Context(), &apiv1.JobSpec{
			Name: fmt.Sprintf("job-%d", seed), Pipeline: []byte(document), Epochs: epochs, Order: "deterministic",
			Ranks: ranks,
			Plan:  &apiv1.PlanOptions{Batch: 50, SplitBatches: 4, Seed: seed, Shuffle: "none"},
		})
		require.NoError(t, err)
		return st.Id
	}
	draws := 24
	if testing.Short() {
		draws = 8
	}
	for i := range draws {
		id := submit(1)
		one := launcher{Control: s.URL(), Job: id, Run: fmt.Sprintf("first of %d", i), At: 1 + rng.IntN(len(all)),
			Ending: softEndings[rng.IntN(len(softEndings))]}
		hard := rng.IntN(3) == 0
		if hard {
			one.Ending = hardEndings[rng.IntN(len(hardEndings))]
		}
		two := one
		two.Run, two.At, two.Ending = fmt.Sprintf("second of %d", i), 0, ""
		how := []string{"resume", "resume", "the same run", "nothing", "token"}[rng.IntN(5)]
		if how == "token" {
			one.Save = 1 + rng.IntN(one.At)
		}
		first := one.run(t)
		said := fmt.Sprintf("draw %d: %+v, then %s\n%s", i, one, how, first.errs)
		require.Equal(t, all[:one.At], first.given, said)
		consumed := first.given[:one.At-1]
		if one.Ending == "cancel" || one.Ending == "acknowledge" {
			consumed = first.given
		}
		switch how {
		case "resume":
			two.Resume = true
		case "the same run":
			two.Run = one.Run
		case "token":
			two.Token, consumed, hard = first.token, first.given[:first.saved], false
		}
		second := two.run(t)
		said += second.errs
		switch {
		case how == "nothing" && second.refused:
			require.NotEmpty(t, consumed, said)
			require.Empty(t, second.given, said)
		case how == "nothing": // nothing of the first run's is durable
			require.True(t, hard || len(consumed) == 0, said)
			require.Equal(t, all, second.given, said)
		case hard: // mini-batches that were acknowledged just before may come again
			kept := len(all) - len(second.given)
			require.LessOrEqual(t, kept, len(consumed), said)
			require.Equal(t, all[kept:], second.given, said)
		case len(consumed) == len(all):
			require.Empty(t, second.given, said)
			require.NotEmpty(t, second.errs, said)
		default:
			require.Equal(t, all, append(consumed[:len(consumed):len(consumed)], second.given...), said)
		}
		_ = c.Cancel(t.Context(), id) // a drive holds a limited number of jobs
	}

	// Two ranks: each rank learns of its own progress, and gets the rest of its own share.
	id := submit(2)
	var got []string
	for rank := range uint32(2) {
		l := launcher{Control: s.URL(), Job: id, Run: "both", Rank: rank, At: 5, Ending: "panic"}.run(t)
		require.Len(t, l.given, 5, l.errs)
		got = append(got, l.given[:4]...)
	}
	for rank := range uint32(2) {
		require.True(t, launcher{Control: s.URL(), Job: id, Run: "both again", Rank: rank}.run(t).refused)
	}
	done := make(chan launched, 2)
	for rank := range uint32(2) { // an epoch begins when both ranks are through with the previous epoch
		go func() {
			done <- launcher{Control: s.URL(), Job: id, Run: "both again", Rank: rank, Resume: true}.run(t)
		}()
	}
	for range 2 {
		l := <-done
		got = append(got, l.given...)
	}
	own := each / 2 * 2 * epochs
	require.Len(t, got, own)
	seen := map[string]bool{}
	for _, n := range got {
		require.False(t, seen[n], "%s came twice", n)
		seen[n] = true
	}
}
