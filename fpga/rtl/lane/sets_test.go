package lane

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWorkIsSpreadOverSets checks which set gets which number, and whose error is returned: that of the lowest number,
// whichever set came to an error first.
func TestWorkIsSpreadOverSets(t *testing.T) {
	s := &Simulation{sets: []*unitSet{{}, {}, {}}}
	var mu sync.Mutex
	got := make(map[*unitSet][]int)
	second := make(chan struct{})
	errs := map[int]error{4: errors.New("four"), 5: errors.New("five")}
	err := s.each(11, func(set *unitSet, i int) error {
		mu.Lock()
		got[set] = append(got[set], i)
		mu.Unlock()
		switch i {
		case 4:
			<-second
		case 5:
			close(second)
		}
		return errs[i]
	})
	require.Equal(t, errs[4], err)
	require.Equal(t, map[*unitSet][]int{s.sets[0]: {0, 3, 6, 9}, s.sets[1]: {1, 4}, s.sets[2]: {2, 5}}, got)
	require.NoError(t, s.each(0, nil))
}
