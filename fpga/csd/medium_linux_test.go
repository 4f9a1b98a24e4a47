package csd

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/fpga/csd/flash"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

func fetched(t *testing.T, c nvme.Conn, at uint64, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	cmd := cs.Fetch(at, uint32(n))
	_, err := c.IO(t.Context(), &cmd, b)
	require.NoError(t, err)
	return b
}

func reserved(t *testing.T, c nvme.Conn, n uint64) uint64 {
	t.Helper()
	cmd := cs.SLMReserve(cs.AnyAddress, n)
	cpl, err := c.Admin(t.Context(), &cmd, nil)
	require.NoError(t, err)
	return cpl.Result()
}

// lentMapping is flash that lends another file's bytes, which nobody keeps from being cut.
type lentMapping struct {
	flash.Flash
	bytes []byte
}

func (f *lentMapping) Lend(off, n int64) ([]byte, uint64, bool) { return f.bytes[off : off+n], 1, true }
func (f *lentMapping) Lasts(uint64) bool                        { return true }
func (f *lentMapping) OnRecall(func())                          {}

// TestAMediumThatFailsUnderAnExecution reads lent bytes that are not there: the command fails, and the drive goes on.
func TestAMediumThatFailsUnderAnExecution(t *testing.T) {
	_, m := stockImage(t)
	v := m.Spec.SelfTest[0]
	path := filepath.Join(t.TempDir(), "input")
	const size = 1 << 20
	require.NoError(t, os.WriteFile(path, append(bytes.Clone(v.Input), make([]byte, size-len(v.Input))...), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	mapped, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(mapped)) }()
	memory, err := flash.NewMemory(size)
	require.NoError(t, err)
	d := openDrive(t, Options{Flash: &lentMapping{memory, mapped}, LBA: 512})
	c := connect(t, d)

	at := reserved(t, c, 1<<20)
	sizes := []int{len(v.Program), len(v.Input), int(v.Dict), int(v.Scratch), len(v.Output), 64 << 10}
	var ranges []cs.Range
	for next, i := at, 0; i < len(sizes); i++ {
		n := uint64(sizes[i]+4096) &^ 4095
		ranges = append(ranges, cs.Range{Addr: next, Len: n})
		next += n
	}
	cmd := cs.Store(ranges[0].Addr, uint32(len(v.Program)))
	_, err = c.IO(t.Context(), &cmd, bytes.Clone(v.Program))
	require.NoError(t, err)
	execute := func() error {
		p := cs.Preprocess{Ranges: ranges, Args: v.Args, Copies: []cs.Copy{
			{NSID: 1, NLB: uint32(ranges[1].Len / 512), Dest: ranges[1].Addr},
		}}
		b, err := p.Marshal()
		require.NoError(t, err)
		cmd := cs.PreprocessCommand(uint32(len(b)))
		_, err = c.IO(t.Context(), &cmd, b)
		return err
	}
	require.NoError(t, execute())
	require.Equal(t, v.Output, fetched(t, c, ranges[4].Addr, len(v.Output)))
	assert.Zero(t, counted(t, c).FlashToDRAM.Bytes)
	require.NoError(t, os.Truncate(path, 0))
	require.ErrorIs(t, execute(), nvme.UnrecoveredReadError)
	require.NoError(t, os.Truncate(path, size))
	require.ErrorIs(t, execute(), cs.StatusProgramFault, "zeros are no page")
}
