package tcp

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// I/O queues take turns. A queue that is full is passed over while another one has room.
func TestQueuesTakeTurns(t *testing.T) {
	l := &link{}
	for id := range uint16(3) {
		l.io = append(l.io, &queue{id: id, free: make(chan uint16, 1)})
	}
	picked := func() [3]int {
		var n [3]int
		for range 30 {
			n[l.pickIOQueue().id]++
		}
		return n
	}
	l.next.Store(math.MaxUint32 - 10) // the count of turns begins again
	assert.Equal(t, 30, func() int { n := picked(); return n[0] + n[1] + n[2] }(), "where none has room any will do")
	for _, q := range l.io {
		q.free <- 0
	}
	l.next.Store(0)
	assert.Equal(t, [3]int{10, 10, 10}, picked())
	<-l.io[1].free
	assert.Equal(t, 0, picked()[1])
	<-l.io[0].free
	assert.Equal(t, [3]int{0, 0, 30}, picked())
	l.io = l.io[:1]
	assert.Equal(t, uint16(0), l.pickIOQueue().id)
}
