package nvme

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// LostRange is a run of blocks of namespace 1 that a drive has lost: they read as zeros that no host wrote.
type LostRange struct {
	SLBA   uint64 // first block
	Blocks uint64 // at least 1
}

// Sizes of log page C2h. MaxLost is the most ranges that it holds.
const (
	LostHeaderSize = 16
	LostRangeSize  = 16
	MaxLost        = 64
	LostLogSize    = LostHeaderSize + MaxLost*LostRangeSize
)

// lostMagic begins the page: a drive of another vendor has something else there.
const lostMagic = "MRLOST\x01\x00"

// ErrNoLostLog says that a log page C2h is not one of blocks that were lost.
var ErrNoLostLog = errors.New("the log page does not tell of lost blocks")

// MarshalLost writes log page C2h; of more than MaxLost ranges the last ones are left out.
func MarshalLost(list []LostRange) []byte {
	list = list[:min(len(list), MaxLost)]
	b := make([]byte, LostLogSize)
	copy(b, lostMagic)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(list)))
	for i, r := range list {
		at := LostHeaderSize + i*LostRangeSize
		binary.LittleEndian.PutUint64(b[at:], r.SLBA)
		binary.LittleEndian.PutUint64(b[at+8:], r.Blocks)
	}
	return b
}

// UnmarshalLost reads log page C2h. An error wraps ErrNoLostLog.
func UnmarshalLost(b []byte) ([]LostRange, error) {
	if len(b) < LostHeaderSize || string(b[:len(lostMagic)]) != lostMagic {
		return nil, ErrNoLostLog
	}
	n := binary.LittleEndian.Uint32(b[8:])
	if n > MaxLost || len(b) < LostHeaderSize+int(n)*LostRangeSize {
		return nil, fmt.Errorf("%w: %d ranges in %d bytes", ErrNoLostLog, n, len(b))
	}
	var list []LostRange
	for i := range int(n) {
		at := LostHeaderSize + i*LostRangeSize
		r := LostRange{SLBA: binary.LittleEndian.Uint64(b[at:]), Blocks: binary.LittleEndian.Uint64(b[at+8:])}
		if r.Blocks == 0 || r.SLBA+r.Blocks < r.SLBA {
			return nil, fmt.Errorf("%w: a range of %d blocks from block %d on", ErrNoLostLog, r.Blocks, r.SLBA)
		}
		list = append(list, r)
	}
	return list, nil
}
