package slicer

// headerGuess is the window, in bytes, with which a page header is looked at when nothing is known of the page.
const headerGuess = 4 << 10

// roomGuess is the unpacked page expected of a compressed chunk before one was seen: what most writers aim at, and a
// little for levels.
const roomGuess = 1<<20 + 64<<10

// dictGuess is the decoded dictionary expected before one was seen.
const dictGuess = 64 << 10

// wantedInput returns the bytes from the cursor's page on that count rows take: what the engine asked for, else a
// guess.
func (c *chunk) wantedInput(count int64, k *pageSizes) uint64 {
	left := c.bytesLeft()
	if c.input > 0 {
		return min(c.input, left)
	}
	if c.thrift >= noReadingAhead {
		return min(grain, left)
	}
	if k.askRoom && c.packed() && c.wantedRoom(k) == 0 {
		return min(headerGuess, left) // the page's header tells what room it takes
	}
	if left <= c.wholeAt {
		return left
	}
	toData := c.dataPage - min(c.dataPage, c.cursor.Page)
	if c.resume != nil {
		return min(toData+headerGuess, left) // the dictionary is all that is wanted
	}
	if n, ok := c.indexedBytes(count); ok && c.cursor.Page >= c.dataPage {
		return min(n, left)
	}
	skip := c.skippedRows()
	rows := max(c.rows-(c.row-skip), 1)
	bytesPerRow := left/uint64(rows) + 1
	// Of whole pages to pass over the headers are enough.
	if c.kind.Values > 0 && uint64(skip)*bytesPerRow > max(k.page, headerGuess) {
		return min(toData+headerGuess, left)
	}
	n := uint64(skip+count) * bytesPerRow
	if k.page > 0 {
		n = (n + k.page - 1) / k.page * k.page // pages have to be there whole, and are alike
	}
	return min(max(n+toData, headerGuess), left)
}

// leastInput returns the least bytes from the cursor's page on that count rows may take, if pages are as expected.
func (c *chunk) leastInput(count int64) uint64 {
	left := c.bytesLeft()
	if n, ok := c.indexedBytes(count); ok {
		return min(n, left)
	}
	rows := max(c.rows-(c.row-c.skippedRows()), 1)
	return min((c.cursor.Skip+uint64(count))*(left/uint64(rows)+1), left)
}

// wantedDict returns the bytes of the decoded dictionary: what the engine asked for, else a guess.
func (c *chunk) wantedDict(k *pageSizes) uint64 {
	if !c.coded || c.thrift >= noGuess {
		return c.dict
	}
	if c.dict > 0 || k.dict > 0 {
		return max(c.dict, k.dict)
	}
	return min(dictGuess, 8*c.kind.Values+grain)
}

// wantedRoom returns the bytes of scratch: what the engine asked for, else a guess.
func (c *chunk) wantedRoom(k *pageSizes) uint64 {
	if c.thrift >= noGuess {
		return c.room
	}
	if c.room > 0 || k.room > 0 {
		return max(c.room, k.room)
	}
	if k.askRoom || !c.packed() {
		return 0
	}
	return min(roomGuess, c.unpacked)
}

// demanded returns all bytes that the engine asked for.
func (c *chunk) demanded() uint64 { return c.input + c.dict + c.room }
