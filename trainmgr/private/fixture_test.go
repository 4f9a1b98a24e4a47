package private

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/shared"
	"github.com/millrace/millrace/sdk/tensor"
)

// row is a row of the generated files.
type row struct {
	Label int32   `parquet:"label"`
	Price float32 `parquet:"price"`
	Items []int64 `parquet:"items,list"`
}

const features = `
name: private
batch: 20
label: {column: label}
dense:
  - columns: [price]
    ops: [log: {add: 1}]
sparse:
  - columns: [items]
    ops: [sigrid_hash: {salt: 0, max: 1000}]
`

// writeFiles writes a Parquet file for each number of rows, and returns the pattern that names all of them.
func writeFiles(t testing.TB, rows ...int) (pattern string) {
	t.Helper()
	dir := t.TempDir()
	for i, n := range rows {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		all := make([]row, n)
		for r := range all {
			all[r] = row{Label: int32(r % 2), Price: rng.Float32() * 100}
			for range rng.IntN(5) {
				all[r].Items = append(all[r].Items, rng.Int64N(1<<40))
			}
		}
		var b bytes.Buffer
		w := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(100))
		_, err := w.Write(all)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		name := filepath.Join(dir, fmt.Sprintf("day_%d.parquet", i))
		require.NoError(t, os.WriteFile(name, b.Bytes(), 0o644))
	}
	return filepath.Join(dir, "day_*.parquet")
}

// trainer is the other end of a connection: it maps buffers and reads frames, as the Python package does.
type trainer struct {
	t       testing.TB
	conn    *net.UnixConn
	reader  *bufio.Reader
	files   []*os.File // descriptors that came, not yet named by a Buffer
	buffers map[int][]byte
	limit   int64
}

// socketpair returns two connected unix sockets.
func socketpair(t testing.TB) (ours, theirs *net.UnixConn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	var conns []*net.UnixConn
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
		conn, _, err := Inherited(os.NewFile(uintptr(fd), "socket"))
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	t.Cleanup(func() { _ = conns[0].Close() })
	return conns[0], conns[1]
}

// start serves a trainer in this process. ended gives what Serve returned.
func start(t testing.TB, o Options) (tr *trainer, ended chan error) {
	t.Helper()
	if runtime.GOOS != "linux" {
		shared.Missing(t, "the private process needs Linux")
	}
	ours, theirs := socketpair(t)
	ended = make(chan error, 1)
	go func() { ended <- Serve(context.Background(), theirs, o) }()
	return newTrainer(t, ours), ended
}

func newTrainer(t testing.TB, conn *net.UnixConn) *trainer {
	tr := &trainer{t: t, conn: conn, buffers: map[int][]byte{}}
	tr.reader = bufio.NewReader(tr)
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	t.Cleanup(tr.close)
	return tr
}

// Read implements io.Reader over bytes and descriptors.
func (tr *trainer) Read(b []byte) (int, error) {
	control := make([]byte, 1024)
	n, m, _, _, err := tr.conn.ReadMsgUnix(b, control)
	if err != nil {
		return 0, err
	}
	if m > 0 {
		messages, err := unix.ParseSocketControlMessage(control[:m])
		require.NoError(tr.t, err)
		for i := range messages {
			fds, err := unix.ParseUnixRights(&messages[i])
			require.NoError(tr.t, err)
			for _, fd := range fds {
				tr.files = append(tr.files, os.NewFile(uintptr(fd), "buffer"))
			}
		}
	}
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (tr *trainer) close() {
	for _, b := range tr.buffers {
		assert.NoError(tr.t, unix.Munmap(b))
	}
	tr.buffers = map[int][]byte{}
	for _, f := range tr.files {
		assert.NoError(tr.t, f.Close())
	}
	tr.files = nil
	_ = tr.conn.Close()
}

func (tr *trainer) send(m Message) {
	tr.t.Helper()
	b, err := Encode(m)
	require.NoError(tr.t, err)
	_, err = tr.conn.Write(b)
	require.NoError(tr.t, err)
}

// next returns the next message that is not about a buffer.
func (tr *trainer) next() (Message, error) {
	tr.t.Helper()
	for {
		m, err := Read(tr.reader)
		if err != nil {
			return nil, err
		}
		switch m := m.(type) {
		case *Buffer:
			require.NotEmpty(tr.t, tr.files, "a buffer without its descriptor")
			fd := int(tr.files[0].Fd())
			// A trainer may make a private mapping. A shared mapping that can write is refused.
			_, err := unix.Mmap(fd, 0, int(m.Bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			require.ErrorIs(tr.t, err, unix.EPERM)
			require.ErrorIs(tr.t, unix.Ftruncate(fd, m.Bytes+1), unix.EPERM)
			require.ErrorIs(tr.t, unix.Ftruncate(fd, m.Bytes-1), unix.EPERM)
			mapped, err := unix.Mmap(fd, 0, int(m.Bytes), unix.PROT_READ, unix.MAP_PRIVATE)
			require.NoError(tr.t, err)
			require.NoError(tr.t, tr.files[0].Close())
			tr.files = tr.files[1:]
			tr.buffers[m.Buffer], tr.limit = mapped, m.Limit
		case *Retired:
			require.Contains(tr.t, tr.buffers, m.Buffer)
			require.NoError(tr.t, unix.Munmap(tr.buffers[m.Buffer]))
			delete(tr.buffers, m.Buffer)
		default:
			return m, nil
		}
	}
}

// must returns the next message, which has to be of a type.
func must[M Message](tr *trainer) M {
	tr.t.Helper()
	m, err := tr.next()
	require.NoError(tr.t, err)
	wanted, ok := m.(M)
	if !ok {
		if failed, is := m.(*Failed); is {
			require.Fail(tr.t, "it failed", "%+v", failed)
		}
		require.Fail(tr.t, "unexpected message", "%T %+v", m, m)
	}
	return wanted
}

// take returns the next mini-batch, gives its buffer back, and checks that its name is the announced name.
func (tr *trainer) take() (*MiniBatch, *tensor.MiniBatch) {
	tr.t.Helper()
	m := must[*MiniBatch](tr)
	frame := append([]byte(nil), tr.buffers[m.Buffer][:m.Bytes]...)
	mb, err := tensor.ReadFrame(frame)
	require.NoError(tr.t, err)
	require.NoError(tr.t, mb.Validate())
	require.Equal(tr.t, m.Epoch, mb.Name.Epoch)
	require.Equal(tr.t, m.Number, mb.Name.Number)
	tr.send(&Free{Buffer: m.Buffer})
	return m, mb
}

// awaitEnd waits for the end of Serve.
func awaitEnd(t testing.TB, ended chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Minute):
		require.Fail(t, "the process goes on without its trainer")
		return nil
	}
}

// memoryFiles counts the buffers that this process has open or mapped.
func memoryFiles(t testing.TB) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	count := bytes.Count(maps, []byte("millrace-minibatch"))
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, entry := range list {
		if to, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil &&
			bytes.Contains([]byte(to), []byte("millrace-minibatch")) {
			count++
		}
	}
	return count
}
