package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/millrace/millrace/nvme"
)

// bufferSize is how much of a member is held in memory while it is written.
const bufferSize = 1 << 20

// Put appends a member of exactly size bytes, which it reads from r. When it returns nil, the member is on stable
// storage. When it returns an error, the member is absent and the drive has its room back; only if the very last write
// failed may the member be there, whole. The members before it are never touched. The package comment has the order of
// the writes.
func (v *Volume) Put(ctx context.Context, name string, size int64, r io.Reader) error {
	if err := checkName(name); err != nil {
		return fmt.Errorf("volume: put %q: %w: %w", name, ErrName, err)
	}
	if size < 0 {
		return fmt.Errorf("volume: put %q: negative size %d: %w", name, size, ErrSize)
	}
	v.appending.Lock()
	defer v.appending.Unlock()
	if err := v.refresh(ctx); err != nil {
		return fmt.Errorf("volume: put %q: %w", name, err)
	}
	v.mu.Lock()
	start, full := v.end, len(v.members) == MaxMembers
	_, exists := v.byName[name]
	v.mu.Unlock()
	if exists {
		return fmt.Errorf("volume: put %q: %w, and members stay as they are: leave the file out, or give it another name",
			name, ErrExists)
	}
	now := time.Now
	if v.Now != nil {
		now = v.Now
	}
	mtime := now()
	head := encodeHeader(name, size, mtime)
	free := v.device.Size() - start
	need := int64(len(head)) + 2*sector // without the data, which may have any size
	if data := roundUpFits(size); full || need > free || data > free-need {
		return &FullError{Name: name, Need: need + data, Free: free}
	}
	a := &appender{ctx: ctx, dev: v.device, blockSize: int64(v.device.BlockSize()), start: start}
	if err := a.run(head, size, r); err != nil {
		if errors.Is(err, nvme.CapacityExceeded) {
			err = fmt.Errorf("%w: %w", ErrDiskFull, err)
		}
		return fmt.Errorf("volume: put %q: %w", name, errors.Join(err, a.giveBack()))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	data := start + int64(len(head))
	v.add(Member{Name: name, Offset: data, Size: size, ModTime: time.Unix(mtime.Unix(), 0)})
	v.end = data + roundUp(size, sector)
	return nil
}

// roundUpFits rounds up to whole sectors and cannot overflow: 2^62 bytes are more than any device has.
func roundUpFits(size int64) int64 { return roundUp(min(size, 1<<62), sector) }

// appender writes one member. It is used once.
type appender struct {
	ctx         context.Context
	dev         BlockDevice
	blockSize   int64
	start       int64  // offset of the member
	commitBlock []byte // the device block with byte start, which is written last: the commit
	buf         []byte // not written yet; begins at block lba
	lba         int64

	committing bool // the commit was sent, and may have been done
}

// run writes a member: its headers, then size bytes of r, then the archive's end, then the commit.
func (a *appender) run(head []byte, size int64, r io.Reader) error {
	// The first block keeps the bytes before the member. The bytes from the member on are zeros, because the archive
	// ends there, and are replaced.
	a.lba = a.start / a.blockSize
	keep := a.start % a.blockSize
	all := roundUp(keep+int64(len(head))+roundUp(size, sector)+2*sector, a.blockSize)
	a.buf = make([]byte, keep, max(min(bufferSize/a.blockSize*a.blockSize, all), 2*a.blockSize))
	if keep > 0 {
		if err := readFull(a.dev.ReaderAt(a.ctx), a.buf, a.lba*a.blockSize); err != nil {
			return err
		}
	}
	if err := a.write(head); err != nil {
		return err
	}
	if err := a.copy(r, size); err != nil {
		return err
	}
	// Pad to a sector, then the end of the archive, then the rest of the block.
	pad := roundUp(size, sector) - size + 2*sector
	if err := a.write(make([]byte, pad)); err != nil {
		return err
	}
	if err := a.write(make([]byte, roundUp(int64(len(a.buf)), a.blockSize)-int64(len(a.buf)))); err != nil {
		return err
	}
	if err := a.drain(); err != nil {
		return err
	}
	if err := a.dev.Flush(a.ctx); err != nil {
		return err
	}
	a.committing = true
	return a.dev.WriteBlocks(a.ctx, a.commitBlock, uint64(a.start/a.blockSize), true)
}

// copy writes size bytes of r, and checks that r has no more.
func (a *appender) copy(r io.Reader, size int64) error {
	for left := size; left > 0; {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		if len(a.buf) == cap(a.buf) {
			if err := a.drain(); err != nil {
				return err
			}
		}
		// The data is read into the buffer, and so moved once.
		room := a.buf[len(a.buf):cap(a.buf)]
		n, err := io.ReadFull(r, room[:min(left, int64(len(room)))])
		a.buf, left = a.buf[:len(a.buf)+n], left-int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return fmt.Errorf("%w: it ended %d bytes early", ErrSize, left)
		}
		if err != nil {
			return fmt.Errorf("read source: %w", err)
		}
	}
	var one [1]byte
	switch n, err := io.ReadFull(r, one[:]); {
	case n > 0:
		return fmt.Errorf("%w: it has more than %d bytes", ErrSize, size)
	case err != io.EOF:
		return fmt.Errorf("read source: %w", err)
	}
	return nil
}

// write appends p to the buffer, and drains the buffer when it is full.
func (a *appender) write(p []byte) error {
	for len(p) > 0 {
		if len(a.buf) == cap(a.buf) {
			if err := a.drain(); err != nil {
				return err
			}
		}
		n := min(len(p), cap(a.buf)-len(a.buf))
		a.buf, p = append(a.buf, p[:n]...), p[n:]
	}
	return nil
}

// drain writes the whole blocks of the buffer, except the member's first block, which is written last.
func (a *appender) drain() error {
	whole := a.buf[:int64(len(a.buf))/a.blockSize*a.blockSize]
	rest := a.buf[len(whole):]
	lba := a.lba
	a.lba += int64(len(whole)) / a.blockSize
	if a.commitBlock == nil && len(whole) > 0 {
		a.commitBlock = append([]byte(nil), whole[:a.blockSize]...)
		whole, lba = whole[a.blockSize:], lba+1
	}
	if len(whole) > 0 {
		if err := a.dev.WriteBlocks(a.ctx, whole, uint64(lba), false); err != nil {
			return err
		}
	}
	a.buf = a.buf[:copy(a.buf, rest)]
	return nil
}
