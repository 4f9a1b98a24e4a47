package buffer

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBudgetServesInOrder(t *testing.T) {
	b := NewBudget(10)
	require.True(t, b.TakeOrWait(6, new(Waiter)))
	var mu sync.Mutex
	var order []int
	var wg sync.WaitGroup
	for i, n := range []int{8, 1, 2} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			ok := b.TakeOrWait(n, new(Waiter))
			mu.Lock()
			defer mu.Unlock()
			if ok {
				order = append(order, n)
			}
		}()
		require.Eventually(t, func() bool { return b.waiting() == i+1 }, time.Minute, time.Microsecond)
	}
	require.False(t, b.TakeWithoutWaiting(1), "nobody passes those who wait")
	b.GiveBack(6)
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(order) == 2 }, time.Minute,
		time.Microsecond)
	b.End()
	wg.Wait()
	require.ElementsMatch(t, []int{8, 1}, order)
	require.False(t, b.TakeOrWait(1, new(Waiter)))
}

// waiting returns the number of waiters.
func (b *Budget) waiting() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := b.first; w != nil; w = w.next {
		n++
	}
	return n
}
