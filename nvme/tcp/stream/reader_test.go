package stream

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// A stream that never pauses does not count as stalled: the reader's wait begins again with each PDU for which it
// waits, and there is no wait between PDUs.
func TestReaderTimesEachPDU(t *testing.T) {
	rules := pdu.Rules{MaxData: 1 << 20}
	f := rules.Layout(pdu.TypeH2CData, pdu.FlagLast, readBuffer)
	one := make([]byte, f.Prefix(), f.Prefix()+readBuffer)
	pdu.Data{Length: readBuffer}.Put(one)
	f.Seal(one)
	one = append(one, bytes.Repeat([]byte{1}, readBuffer)...)
	r := NewReader(bytes.NewReader(bytes.Repeat(one, 20)), rules)
	var last int64
	waits := 0
	for range 20 {
		f, _, err := r.NextPDU()
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
		got := make([]byte, f.Data)
		ok, err := r.ReadData(&f, got)
		require.NoError(t, err)
		require.True(t, ok)
		since := r.Awaits.began.Load()
		if since != 0 { // 0: all of it was there already
			assert.NotEqual(t, last, since, "the same wait as for the PDU before")
			last = since
			waits++
		}
	}
	assert.Positive(t, waits)
	_, _, err := r.NextPDU()
	require.ErrorIs(t, err, io.EOF)
	assert.False(t, r.Awaits.Running(), "between PDUs nothing is waited for")
}

func TestReaderAtTheEnd(t *testing.T) {
	rules := pdu.Rules{MaxData: 1 << 20}
	f := rules.Layout(pdu.TypeH2CData, pdu.FlagLast, 100)
	b := make([]byte, f.Prefix()+100)
	pdu.Data{Length: 100}.Put(b)
	f.Seal(b)
	for n := range len(b) {
		r := NewReader(bytes.NewReader(b[:n]), rules)
		f, _, err := r.NextPDU()
		if err == nil {
			_, err = r.ReadData(&f, make([]byte, f.Data))
		}
		if n == 0 {
			require.Equal(t, io.EOF, err)
			continue
		}
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", n)
	}
}
