package stream

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type letter struct {
	from, n byte
	large   []byte
}

func newLetters(nc net.Conn) (*Outbox[letter], *atomic.Int64) {
	settled := new(atomic.Int64)
	return NewOutbox(nc, func(b *Batch, l *letter) {
		p := b.Reserve(3)
		p[0], p[1], p[2] = l.from, l.n, 0
		if l.large != nil {
			p[2] = 1
			b.AddData(l.large)
		}
	}, func(*letter, error) { settled.Add(1) }), settled
}

// Messages of several senders arrive whole, each sender's in order, whichever goroutine writes them.
func TestOutboxKeepsOrder(t *testing.T) {
	a, b := net.Pipe()
	o, settled := newLetters(a)
	const senders, each = 5, 250
	large := bytes.Repeat([]byte("large "), copyLimit/4)
	var wg sync.WaitGroup
	for s := range byte(senders) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range byte(each) {
				l := letter{from: s, n: n}
				if n%10 == s {
					l.large = large
				}
				send := o.Send
				if n%3 == 0 {
					send = o.Post
				}
				assert.NoError(t, send(l))
			}
		}()
	}
	var next [senders]byte
	for range senders * each {
		var h [3]byte
		_, err := io.ReadFull(b, h[:])
		require.NoError(t, err)
		require.Equal(t, next[h[0]], h[1], "sender %d", h[0])
		next[h[0]]++
		if h[2] == 1 {
			got := make([]byte, len(large))
			_, err := io.ReadFull(b, got)
			require.NoError(t, err)
			require.Equal(t, large, got)
		}
	}
	wg.Wait()
	o.AwaitWritten()
	assert.EqualValues(t, senders*each, settled.Load(), "each is settled once")
	o.Stop(net.ErrClosed)
	require.ErrorIs(t, o.Send(letter{}), net.ErrClosed)
}

// When the connection fails, messages that were taken are settled nevertheless, and no further message is taken.
func TestOutboxOnABrokenConnection(t *testing.T) {
	a, b := net.Pipe()
	o, settled := newLetters(a)
	require.NoError(t, b.Close())
	taken := int64(0)
	for {
		if err := o.Send(letter{}); err != nil {
			require.ErrorIs(t, err, io.ErrClosedPipe)
			break
		}
		taken++
	}
	require.NotZero(t, taken)
	o.Stop(net.ErrClosed)
	assert.Equal(t, taken, settled.Load())
}

func TestOutboxAfterTheLast(t *testing.T) {
	a, b := net.Pipe()
	o, settled := newLetters(a)
	require.NoError(t, o.Queue(letter{n: 1}, true))
	require.True(t, errors.Is(o.Send(letter{n: 2}), ErrClosed))
	var h [3]byte
	_, err := io.ReadFull(b, h[:])
	require.NoError(t, err)
	require.Equal(t, byte(1), h[1])
	o.Stop(net.ErrClosed)
	assert.EqualValues(t, 1, settled.Load())
}
