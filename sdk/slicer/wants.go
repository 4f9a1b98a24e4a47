package slicer

// headerGuess is the size of the window, in bytes, for a page header if nothing is known of the page.
const headerGuess = 4 << 10

// scratchGuess is the expected size of a compressed chunk's unpacked page before one was seen: the size that most
// writers aim at, and a little more for levels.
const scratchGuess = 1<<20 + 64<<10

// dictGuess is the expected size of a decoded dictionary before one was seen.
const dictGuess = 64 << 10

// wantedInput returns the bytes from the cursor's page on that count rows take: what the engine asked for, else a
// guess.
func (c *chunk) wantedInput(count int64, learned *pageSizes) uint64 {
	left := c.remainingBytes()
	if c.inputBytes > 0 {
		return min(c.inputBytes, left)
	}
	if c.guesses >= guessNothing {
		return min(grain, left)
	}
	if learned.askScratch && c.isCompressed() && c.wantedScratch(learned) == 0 {
		return min(headerGuess, left) // the page's header says how much room it takes
	}
	if left <= c.moveWholeBelow {
		return left
	}
	toData := c.firstDataPage - min(c.firstDataPage, c.cursor.Page)
	if c.resumeAt != nil {
		return min(toData+headerGuess, left) // the dictionary is all that is wanted
	}
	if n, ok := c.indexedBytes(count); ok && c.cursor.Page >= c.firstDataPage {
		return min(n, left)
	}
	skip := c.skippedRows()
	rows := max(c.rows-(c.row-skip), 1)
	bytesPerRow := left/uint64(rows) + 1
	// For whole pages that are skipped the headers are enough.
	if c.kind.Values > 0 && uint64(skip)*bytesPerRow > max(learned.pageBytes, headerGuess) {
		return min(toData+headerGuess, left)
	}
	n := uint64(skip+count) * bytesPerRow
	if learned.pageBytes > 0 {
		n = (n + learned.pageBytes - 1) / learned.pageBytes * learned.pageBytes // pages must be there whole, and are alike
	}
	return min(max(n+toData, headerGuess), left)
}

// leastInput returns the least bytes from the cursor's page on that count rows may take, if pages are as expected.
func (c *chunk) leastInput(count int64) uint64 {
	left := c.remainingBytes()
	if n, ok := c.indexedBytes(count); ok {
		return min(n, left)
	}
	rows := max(c.rows-(c.row-c.skippedRows()), 1)
	return min((c.cursor.Skip+uint64(count))*(left/uint64(rows)+1), left)
}

// wantedDictionary returns the bytes of the decoded dictionary: what the engine asked for, else a guess.
func (c *chunk) wantedDictionary(learned *pageSizes) uint64 {
	if !c.dictionaryEncoded || c.guesses >= guessWindow {
		return c.dictBytes
	}
	if c.dictBytes > 0 || learned.dictBytes > 0 {
		return max(c.dictBytes, learned.dictBytes)
	}
	return min(dictGuess, 8*c.kind.Values+grain)
}

// wantedScratch returns the bytes of scratch: what the engine asked for, else a guess.
func (c *chunk) wantedScratch(learned *pageSizes) uint64 {
	if c.guesses >= guessWindow {
		return c.scratchBytes
	}
	if c.scratchBytes > 0 || learned.scratchBytes > 0 {
		return max(c.scratchBytes, learned.scratchBytes)
	}
	if learned.askScratch || !c.isCompressed() {
		return 0
	}
	return min(scratchGuess, c.unpackedBytes)
}

// demandedBytes returns all bytes that the engine asked for.
func (c *chunk) demandedBytes() uint64 { return c.inputBytes + c.dictBytes + c.scratchBytes }
