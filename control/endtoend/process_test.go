package endtoend

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control"
	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/target"
	"github.com/millrace/millrace/host/worker"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/remote"
)

// roleEnv names the variable that holds, as JSON, the role of a process of this test binary.
const roleEnv = "MILLRACE_ENDTOEND_ROLE"

// role is the task of a process.
type role struct {
	Member  *control.Options
	Node    *node.Config
	Worker  *worker.Config
	Card    *card
	Serves  *worker.Rank // the only rank of the Worker
	Trainer *trainer
	Reducer *reducer

	Link *link // nil: in the network of this process; else in one of its own, behind a link
}

func TestMain(m *testing.M) {
	if told := os.Getenv(launcherEnv); told != "" {
		os.Exit(launch(told))
	}
	if text := os.Getenv(roleEnv); text != "" {
		if err := play(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv("MILLRACE_SERVICE") == "" {
		fmt.Println("skipped: processes are started and killed here for a minute: MILLRACE_SERVICE=1 go test " +
			"./control/endtoend (make test does)")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// play is the whole life of a process in a role. The process ends when its standard input ends, so that no process
// outlives the test.
func play(text string) error {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	if r.Link != nil {
		if err := r.Link.await(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		cancel()
		time.Sleep(time.Minute) // a process that has not ended after this time hangs: ending takes well under a second
		os.Exit(2)
	}()
	switch {
	case r.Member != nil:
		r.Member.Logger = logger()
		s, err := control.Start(ctx, *r.Member)
		if err != nil {
			return err
		}
		fmt.Println("ready", s.URL())
		<-ctx.Done()
		return s.Close()
	case r.Node != nil:
		a, err := node.Start(ctx, *r.Node, node.Options{Logger: logger(), Probe: 20 * time.Millisecond})
		if err != nil {
			return err
		}
		fmt.Println("ready", strings.Join(a.URLs(), " "))
		<-ctx.Done()
		return a.Close()
	case r.Worker != nil:
		return worker.Run(ctx, *r.Worker, worker.Options{Logger: logger(), Serves: r.Serves}, func(a *node.Agent) {
			fmt.Println("ready", strings.Join(a.URLs(), " "))
		})
	}
	if r.Card != nil {
		return r.Card.run(ctx)
	}
	fmt.Println("ready")
	if r.Reducer != nil {
		return r.Reducer.run(ctx)
	}
	return r.Trainer.run(ctx)
}

// card is a process that serves a drive without flash.
type card struct {
	Listen, NQN string
	SLM         int64
}

func (k *card) run(ctx context.Context) error {
	served, err := target.Start(target.Options{Drive: csd.Options{Diskless: true, SLMBytes: k.SLM, NQN: k.NQN},
		Listen: k.Listen, Logger: logger()})
	if err != nil {
		return err
	}
	fmt.Println("ready", served.URI())
	return errors.Join(served.Wait(ctx), served.Close())
}

// process is a process in a role.
type process struct {
	role  role
	cmd   *exec.Cmd
	stdin io.Closer     // tells the process to end when it closes
	said  []string      // after ready
	done  chan struct{} // closed when it has ended
	err   error         // then: how
}

// start starts a process and waits until it is ready.
func start(t testing.TB, r role) *process {
	t.Helper()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	p := &process{role: r, cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	// A process that is killed leaves its temporary folders.
	p.cmd.Env = append(os.Environ(), roleEnv+"="+string(text), "TMPDIR="+t.TempDir())
	p.cmd.Stderr = os.Stderr
	p.stdin, err = p.cmd.StdinPipe() // closes when this process ends
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	if r.Link != nil {
		r.Link.apart(p.cmd)
	}
	require.NoError(t, p.cmd.Start())
	if r.Link != nil {
		r.Link.plug(t, p.cmd.Process.Pid)
	}
	line, rerr := bufio.NewReader(out).ReadString('\n')
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(p.kill)
	require.NoError(t, rerr, "it ended before it was ready")
	words := strings.Fields(line)
	require.Equal(t, "ready", words[0])
	p.said = words[1:]
	return p
}

// kill kills the process with signal 9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

// trainer is a training process. Its model is the record of the mini-batches that it was trained on, which it writes
// to a file together with the token, by rename.
type trainer struct {
	Control []string
	Job     string
	Rank    uint32
	Model   string
	Every   int           // mini-batches between two checkpoints
	Step    time.Duration // how long a mini-batch takes
}

// model is the state that a trainer has learned.
type model struct {
	Token []byte
	Steps []step
	Done  bool
}

type step struct {
	Epoch, Number uint64
	Sum           uint32
}

func readModel(path string) (m model, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	return m, err
}

func (m *model) write(path string) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".partial", b, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".partial", path)
}

// run trains from the last checkpoint to the end.
func (tr *trainer) run(ctx context.Context) error {
	m, err := readModel(tr.Model)
	if err != nil {
		return err
	}
	c, err := remote.Dial(remote.Options{Control: tr.Control, Logger: logger()})
	if err != nil {
		return err
	}
	j, err := c.Attach(ctx, tr.Job, remote.AttachOptions{Rank: tr.Rank, Token: m.Token, Run: tr.Job, QueueBytes: 60_000,
		Deadline: 3 * time.Second})
	if m.Done && errors.Is(err, remote.ErrEnded) {
		return nil // the control plane answered that this rank is through
	}
	if err != nil {
		return err
	}
	if m.Token == nil { // before its first checkpoint the trainer goes back to the beginning, also after acknowledgements
		if m.Token, err = j.Checkpoint(ctx); err != nil {
			return err
		}
		if err := m.write(tr.Model); err != nil {
			return err
		}
	}
	n := 0
	for mb, err := range j.MiniBatches(ctx) {
		if errors.Is(err, trainmgr.ErrNothingLeft) { // it was killed behind its last checkpoint
			break
		}
		if err != nil {
			return err
		}
		if err := mb.Validate(); err != nil {
			return err
		}
		time.Sleep(tr.Step)
		m.Steps = append(m.Steps, step{mb.Name.Epoch, mb.Name.Number, sum(mb)})
		if n++; n%tr.Every == 0 {
			if err := j.Acknowledge(mb.Name); err != nil {
				return err
			}
			if m.Token, err = j.Checkpoint(ctx); err != nil {
				return err
			}
			if err := m.write(tr.Model); err != nil {
				return err
			}
		}
	}
	if m.Token, err = j.Checkpoint(ctx); err != nil {
		return err
	}
	m.Done = true
	if err := m.write(tr.Model); err != nil {
		return err
	}
	return j.Close() // the last checkpoint is safe
}

// freePorts finds ports that are free now.
func freePorts(t testing.TB, n int) []string {
	t.Helper()
	var held []net.Listener
	var out []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		held = append(held, l)
		out = append(out, l.Addr().String())
	}
	for _, l := range held {
		require.NoError(t, l.Close())
	}
	return out
}

// startMembers starts a control plane of n processes.
func startMembers(t testing.TB, n int) (members []*process, urls []string) {
	t.Helper()
	ports := freePorts(t, 2*n)
	var peers []string
	for i := range n {
		peers = append(peers, fmt.Sprintf("m%d=http://%s", i, ports[i]))
		urls = append(urls, "http://"+ports[n+i])
	}
	started := make(chan *process, n)
	dir := t.TempDir()
	for i := range n {
		o := controlOptions(filepath.Join(dir, fmt.Sprint(i)))
		o.Logger, o.Listen, o.LeaderTTL, o.DeadAfter = nil, ports[n+i], 2*time.Second, 2*time.Second
		if n > 1 {
			o.Name, o.Peers = fmt.Sprintf("m%d", i), peers
		}
		go func() { started <- start(t, role{Member: &o}) }()
	}
	for range n {
		members = append(members, <-started)
	}
	return members, urls
}

// leaderOf returns the process of the member that leads.
func leaderOf(t testing.TB, c *remote.Client, members []*process) int {
	url := c.Leader()
	for i, m := range members {
		if "http://"+m.role.Member.Listen == url {
			return i
		}
	}
	t.Fatalf("nobody leads at %s", url)
	return -1
}

// resultOf returns the mini-batches that a model was trained on.
func resultOf(t testing.TB, digest [32]byte, models ...string) *result {
	t.Helper()
	r := newResult()
	for _, path := range models {
		m, err := readModel(path)
		require.NoError(t, err)
		require.True(t, m.Done, "%s was not trained to the end", path)
		for _, s := range m.Steps {
			name := tensor.Name{Job: digest, Epoch: s.Epoch, Number: s.Number}
			require.NotContains(t, r.sums, name, "trained on twice")
			r.sums[name] = s.Sum
			r.order = append(r.order, s.Number)
		}
	}
	return r
}
