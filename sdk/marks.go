package sdk

import (
	"sort"
	"sync"

	"github.com/millrace/millrace/fpga/program"
)

// mostMarks bounds the places remembered of a partition, some 64 bytes each.
const mostMarks = 1 << 16

// mark is a place between two rows of a column chunk that an engine was at.
type mark struct {
	row     int64 // of the row group
	cursor  program.Cursor
	pageRow int64 // first row of the cursor's page
	had     bool  // the chunk has a dictionary
}

// marks are the places of a partition that streams came by, so that the next one need not walk there from the chunk's
// beginning: pages of lists do not tell their rows. Every cursor in it came from an engine.
type marks struct {
	mu    sync.Mutex // guards what follows
	known map[[2]int][]mark
	count int
}

// note remembers where a chunk stands.
func (m *marks) note(leaf int, c *chunk) {
	skip := int64(min(c.cursor.Skip, uint64(c.row)))
	k := mark{row: c.row, cursor: c.cursor, pageRow: c.pageRow, had: c.had}
	if c.resume != nil || c.cursor.Page == 0 {
		return
	}
	if c.row-skip > 0 && k.pageRow != c.row-skip {
		k.pageRow = c.row - skip
	}
	k.cursor.Dict, k.cursor.Unpacked, k.cursor.Checked = false, false, false
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[[2]int][]mark{}
	}
	at := [2]int{c.group, leaf}
	list := m.known[at]
	i := sort.Search(len(list), func(i int) bool { return list[i].row >= k.row })
	if i < len(list) && list[i].row == k.row || m.count >= mostMarks {
		return
	}
	list = append(list, mark{})
	copy(list[i+1:], list[i:])
	list[i] = k
	m.known[at] = list
	m.count++
}

// find places a fresh chunk's cursor at the last place known before its row.
func (m *marks) find(leaf int, c *chunk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.known[[2]int{c.group, leaf}]
	i := sort.Search(len(list), func(i int) bool { return list[i].row > c.row }) - 1
	if i < 0 {
		return
	}
	k := &list[i]
	if k.cursor.Page <= c.cursor.Page {
		return
	}
	c.cursor, c.pageRow, c.had = k.cursor, k.pageRow, k.had
	c.cursor.Skip += uint64(c.row - k.row)
}
