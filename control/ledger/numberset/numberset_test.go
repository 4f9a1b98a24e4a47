package numberset

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/sdk/dataset"
)

// most is how many numbers the sets of the tests have at most.
const most = 200

// flags are the numbers of a set as the tests keep them.
type flags [most]bool

// of returns the numbers of [from, to) that has reports, as runs.
func of(from, to uint64, has func(n uint64) bool) (s Runs) {
	for n := from; n < to; n++ {
		if has(n) {
			s = s.Append(n, n+1)
		}
	}
	return s
}

// TestRunsAreThoseOfTheirNumbers compares what every method returns with what it returns of single numbers.
func TestRunsAreThoseOfTheirNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Runs
		var want flags
		draw := func() (from, to uint64) {
			from = rapid.Uint64Range(0, most-1).Draw(t, "from")
			return from, rapid.Uint64Range(from, min(from+20, most)).Draw(t, "to")
		}
		for range rapid.IntRange(0, 12).Draw(t, "runs") {
			from, to := draw()
			s = s.Union(from, to)
			for n := from; n < to; n++ {
				want[n] = true
			}
		}
		has := func(n uint64) bool { return want[n] }
		lacks := func(n uint64) bool { return !want[n] }
		require.Equal(t, of(0, most, has), s)
		from, to := draw()
		require.Equal(t, of(from, to, has), s.Within(from, to))
		require.Equal(t, of(from, to, lacks), s.Gaps(from, to))
		count := uint64(0)
		for n := from; n < to; n++ {
			if want[n] {
				count++
			}
		}
		require.Equal(t, count, s.Count(from, to))
		require.Equal(t, count == to-from, s.Covers(from, to))
		if to < most {
			missing := s.Gaps(from, to).Count(from, to)
			end := s.EndOfMissing(from, missing)
			require.Equal(t, missing, s.Gaps(from, end).Count(from, end))
			require.True(t, end == from || !s.Covers(end-1, end), "[%d, %d) is not the shortest", from, end)
		}
		double := s.Convert(func(r dataset.Range) dataset.Range { return dataset.Range{From: 2 * r.From, To: 2 * r.To} })
		require.Equal(t, 2*s.Count(0, most), double.Count(0, 2*most))
		token := s.Token(dataset.Digest{1}, 7)
		require.Equal(t, []any{dataset.Digest{1}, uint64(7)}, []any{token.Job, token.Epoch})
		require.Equal(t, []dataset.Range(s), token.Acknowledged())
		require.True(t, slices.Equal(s, OfToken(&token)))
		below, above := slices.Clone(s).Cut(from)
		require.True(t, slices.Equal(of(0, from, has), below) && slices.Equal(of(from, most, has), above))
	})
	require.Empty(t, OfToken(nil))
}

// TestBits compares the bits with single flags.
func TestBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBits(most)
		var want flags
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			from := rapid.IntRange(0, most-1).Draw(t, "from")
			switch to := rapid.IntRange(from, most).Draw(t, "to"); rapid.IntRange(0, 2).Draw(t, "change") {
			case 0:
				b.Set(from)
				want[from] = true
			case 1:
				b.Clear(from)
				want[from] = false
			default:
				b.Fill(from, to)
				for i := from; i < to; i++ {
					want[i] = true
				}
			}
		}
		for i := range most {
			require.Equal(t, want[i], b.Get(i), i)
		}
		from, n := rapid.IntRange(0, most).Draw(t, "from"), rapid.IntRange(0, most).Draw(t, "n")
		for _, bit := range []bool{false, true} {
			next := max(from, 0)
			for next < n && want[next] != bit {
				next++
			}
			if from < n {
				require.Equal(t, next, b.Next(from, n, bit))
			} else {
				require.Equal(t, n, b.Next(from, n, bit))
			}
		}
	})
}
