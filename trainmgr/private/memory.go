package private

import "github.com/millrace/millrace/sdk/processor"

// DefaultEngineBytes bounds the memory that the engine uses if Open.EngineBytes is 0. With the buffers of mini-batches
// (DefaultQueueBytes, and two mini-batches), the program's pages and Go's own memory, a process over mini-batches of a
// few megabytes stays below 400 MB, however many engine threads there are.
const DefaultEngineBytes = 192 << 20

const (
	// leastStreamBytes is the least memory of a stream. Where the bound has no room for more, there are fewer streams: RM1
	// in mini-batches of 8192 rows takes four times as long with 28 MiB a stream as with 33 MiB, since pages are then
	// unpacked once for each mini-batch.
	leastStreamBytes = 36 << 20
	// programBytes is room for the program, before the memory of the first stream.
	programBytes = 16 << 20
	// reservedStreams is how many streams divide the reserved memory of a machine of few cores.
	reservedStreams = 3
)

// engineMemory is how the engine's memory is divided among streams.
type engineMemory struct {
	streams  int    // streams is how many each local rank has at once, so that none takes what another waits for.
	ofStream uint64 // bytes that a stream uses as long as a mini-batch and the largest page fit
	reserved uint64 // bytes of all streams and the program; a stream whose mini-batches are larger uses the rest
}

// divideEngineMemory divides the bound of the engine's memory (0: the default) among the streams of the local ranks.
// There is a stream more than engine threads, but no more than the bound has room for. Each rank has a stream at least
// (two if there is one rank), whatever the bound.
func divideEngineMemory(bound int64, threads, localRanks int) engineMemory {
	if bound == 0 {
		bound = DefaultEngineBytes
	}
	streams, least := max((threads+localRanks)/localRanks, 1), 1
	if localRanks == 1 {
		least = 2
	}
	streams = max(min(streams, int(bound/leastStreamBytes)/localRanks), least)
	all := uint64(streams * localRanks)
	m := engineMemory{streams: streams, ofStream: max(uint64(bound)/all, leastStreamBytes)}
	rest := max(all, reservedStreams) * processor.MinStreamMemory
	const grain = 1 << 16
	m.reserved = (programBytes + all*m.ofStream + rest + grain - 1) &^ (grain - 1)
	return m
}
