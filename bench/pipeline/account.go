package pipeline

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/tensor"
)

// account counts what a way delivers in one epoch. The zero value is ready.
type account struct {
	batches    map[uint64]arrival // by number
	rows       int64
	frameBytes int64 // frameBytes counts frames that came over a socket.
}

// arrival is one mini-batch that came.
type arrival struct {
	rows int
	sum  uint32 // CRC32 of the tensors, in the order of a frame
}

// add counts a mini-batch. It fails if the mini-batch has come before.
func (a *account) add(number uint64, b arrival) error {
	if _, ok := a.batches[number]; ok {
		return fmt.Errorf("%w: mini-batch %d came twice", ErrDiffers, number)
	}
	if a.batches == nil {
		a.batches = map[uint64]arrival{}
	}
	a.batches[number] = b
	a.rows += int64(b.rows)
	return nil
}

// addBatch counts a mini-batch of this process. framed says that it came as a frame.
func (a *account) addBatch(mb *tensor.MiniBatch, framed bool) error {
	frame, err := tensor.EncodeFrame(mb)
	if err != nil {
		return err
	}
	var sum uint32
	for _, d := range frame.Data {
		sum = crc32.Update(sum, crc32.IEEETable, d)
	}
	if framed {
		a.frameBytes += frame.Len()
	}
	return a.add(mb.Name.Number, arrival{mb.Rows, sum})
}

// check fails unless the mini-batches 0 to n-1 have come, with the given rows together.
func (a *account) check(n uint64, rows int64) error {
	for number := range n {
		if _, ok := a.batches[number]; !ok {
			return fmt.Errorf("%w: mini-batch %d of %d did not come", ErrDiffers, number, n)
		}
	}
	if uint64(len(a.batches)) != n || a.rows != rows {
		return fmt.Errorf("%w: %s of %s came, the data makes %d of %s", ErrDiffers,
			quantity.Of(len(a.batches), "mini-batch"), quantity.Of(a.rows, "row"), n, quantity.Of(rows, "row"))
	}
	return nil
}

// digest is the SHA-256 of all that came, in the order of the numbers.
func (a *account) digest() string {
	h := sha256.New()
	var b []byte
	for _, number := range slices.Sorted(maps.Keys(a.batches)) {
		b = binary.LittleEndian.AppendUint64(b[:0], number)
		b = binary.LittleEndian.AppendUint64(b, uint64(a.batches[number].rows))
		h.Write(binary.LittleEndian.AppendUint32(b, a.batches[number].sum))
	}
	return hex.EncodeToString(h.Sum(nil))
}
