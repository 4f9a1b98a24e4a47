package sdk

import (
	"context"
	"fmt"
	"io"

	"github.com/millrace/millrace/nvme"
)

// NVM command set opcodes and the bit of CDW12 that forces a write to stable storage.
const (
	opFlush = 0x00
	opWrite = 0x01
	opRead  = 0x02
	bitFUA  = 1 << 30
)

// ReadBlocks reads whole blocks from block lba on; len(p) is a multiple of the block size.
func (d *Device) ReadBlocks(ctx context.Context, p []byte, lba uint64) error {
	return d.wrap("read", d.blocks(ctx, opRead, p, lba, 0))
}

// WriteBlocks writes whole blocks from block lba on. With fua the drive answers only when they are on stable storage;
// otherwise Flush puts them there. Each block is written whole or not at all; several blocks may be written in part.
func (d *Device) WriteBlocks(ctx context.Context, p []byte, lba uint64, fua bool) error {
	var dw12 uint32
	if fua {
		dw12 = bitFUA
	}
	return d.wrap("write", d.blocks(ctx, opWrite, p, lba, dw12))
}

// Flush returns when everything written before it is on stable storage.
func (d *Device) Flush(ctx context.Context) error {
	if d.info.Diskless {
		return nil // nothing is volatile that could be kept
	}
	cmd := nvme.New(opFlush, 1)
	_, err := d.queue.Submit(ctx, &cmd, nil).Wait()
	return d.wrap("flush", err)
}

// blocks splits a transfer of whole blocks at the largest transfer and keeps the queue full.
func (d *Device) blocks(ctx context.Context, opcode uint8, p []byte, lba uint64, dw12 uint32) error {
	if d.info.Diskless {
		return ErrNoFlash
	}
	size := d.info.BlockSize
	n := uint64(len(p) / size)
	if len(p)%size != 0 {
		return fmt.Errorf("%d bytes are no whole number of %d-byte blocks", len(p), size)
	}
	if total := uint64(d.info.Size) / uint64(size); lba > total || n > total-lba {
		return fmt.Errorf("lba %d+%d of %d: %w", lba, n, total, nvme.LBAOutOfRange)
	}
	// NLB is a 16-bit field, 0's based.
	most := min(d.mdts/size, 1<<16) * size
	var all futures
	for len(p) > 0 {
		part := p[:min(len(p), most)]
		cmd := nvme.New(opcode, 1)
		cmd.SetData(uint32(len(part)))
		cmd.SetQW(10, lba)
		cmd.SetDW(12, dw12|uint32(len(part)/size-1))
		f := d.queue.Submit(ctx, &cmd, part)
		all = append(all, f)
		if len(all) == d.queue.Depth() {
			// The oldest first: a device's worth of memory for futures is never held.
			if _, err := all[0].Wait(); err != nil {
				_ = all.wait()
				return fmt.Errorf("lba %d: %w", lba, err)
			}
			all = all[1:]
		}
		p, lba = p[len(part):], lba+uint64(len(part)/size)
	}
	return all.wait()
}

// ReaderAt reads bytes of namespace 1 under ctx. Unaligned ends are read by the block and cut.
func (d *Device) ReaderAt(ctx context.Context) io.ReaderAt { return readerAt{ctx, d} }

type readerAt struct {
	ctx context.Context
	d   *Device
}

func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return r.d.readAt(r.ctx, p, off) }

// ReadAt reads len(p) bytes from byte off of namespace 1, with any alignment. It implements io.ReaderAt.
func (d *Device) ReadAt(p []byte, off int64) (int, error) {
	return d.readAt(context.Background(), p, off)
}

func (d *Device) readAt(ctx context.Context, p []byte, off int64) (int, error) {
	if d.info.Diskless {
		return 0, d.wrap("read", ErrNoFlash)
	}
	if off < 0 {
		return 0, fmt.Errorf("%s: read at negative offset %d", d.name, off)
	}
	if off >= d.info.Size {
		return 0, io.EOF
	}
	var end error
	if int64(len(p)) > d.info.Size-off {
		p, end = p[:d.info.Size-off], io.EOF
	}
	size := int64(d.info.BlockSize)
	whole := p
	if head := off % size; head != 0 || int64(len(p)) < size {
		n, err := d.readPart(ctx, p, off)
		if err != nil {
			return 0, err
		}
		whole, off = p[n:], off+int64(n)
	}
	tail := len(whole) % int(size)
	if body := whole[:len(whole)-tail]; len(body) > 0 {
		if err := d.ReadBlocks(ctx, body, uint64(off/size)); err != nil {
			return 0, err
		}
		off += int64(len(body))
	}
	if tail > 0 {
		if _, err := d.readPart(ctx, whole[len(whole)-tail:], off); err != nil {
			return 0, err
		}
	}
	return len(p), end
}

// readPart fills p from the block that holds byte off, and returns how many bytes of p that block filled.
func (d *Device) readPart(ctx context.Context, p []byte, off int64) (int, error) {
	size := int64(d.info.BlockSize)
	block := make([]byte, size)
	if err := d.ReadBlocks(ctx, block, uint64(off/size)); err != nil {
		return 0, err
	}
	return copy(p, block[off%size:]), nil
}

// WriteAt writes p to byte off of namespace 1, with any alignment: a block written in part is read first. Against other
// WriteAt calls of this Device that is one step; against other hosts it is not. It implements io.WriterAt.
func (d *Device) WriteAt(p []byte, off int64) (int, error) {
	ctx := context.Background()
	if d.info.Diskless {
		return 0, d.wrap("write", ErrNoFlash)
	}
	if off < 0 || off > d.info.Size || int64(len(p)) > d.info.Size-off {
		return 0, fmt.Errorf("%s: write %d bytes at %d: behind the end at %d: %w",
			d.name, len(p), off, d.info.Size, nvme.LBAOutOfRange)
	}
	size := int64(d.info.BlockSize)
	d.rmw.Lock()
	defer d.rmw.Unlock()
	written := 0
	for written < len(p) {
		rest := p[written:]
		head := off % size
		if head == 0 && int64(len(rest)) >= size {
			n := len(rest) - len(rest)%int(size)
			if err := d.WriteBlocks(ctx, rest[:n], uint64(off/size), false); err != nil {
				return written, err
			}
			written, off = written+n, off+int64(n)
			continue
		}
		block := make([]byte, size)
		if err := d.ReadBlocks(ctx, block, uint64(off/size)); err != nil {
			return written, err
		}
		n := copy(block[head:], rest)
		if err := d.WriteBlocks(ctx, block, uint64(off/size), false); err != nil {
			return written, err
		}
		written, off = written+n, off+int64(n)
	}
	return written, nil
}
