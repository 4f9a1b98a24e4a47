package volume

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
)

// fakeDevice is a drive that loses power: blocks written are in its cache until Flush, or FUA, puts them on the media.
type fakeDevice struct {
	bs int

	mu      sync.Mutex
	media   []byte
	cache   map[uint64][]byte
	order   []uint64 // cached blocks as first written
	budget  int      // block writes until the power goes; negative: never
	writes  int      // block writes in all
	flushes int
	err     error // of every read, if set
}

var errPower = errors.New("power lost")

func newFake(bs int, size int64) *fakeDevice {
	return &fakeDevice{bs: bs, media: make([]byte, size), cache: map[uint64][]byte{}, budget: -1}
}

// clone is a device with the same media and an empty cache.
func (d *fakeDevice) clone() *fakeDevice {
	c := newFake(d.bs, int64(len(d.media)))
	copy(c.media, d.media)
	return c
}

// crash returns the device as it comes back: of the blocks in the cache, keep says which reached the media.
func (d *fakeDevice) crash(keep func(i int) bool) *fakeDevice {
	c := d.clone()
	for i, lba := range d.order {
		if keep(i) {
			copy(c.media[lba*uint64(d.bs):], d.cache[lba])
		}
	}
	return c
}

func (d *fakeDevice) BlockSize() int { return d.bs }
func (d *fakeDevice) Size() int64    { return int64(len(d.media)) }

func (d *fakeDevice) ReaderAt(context.Context) io.ReaderAt { return fakeReader{d} }

type fakeReader struct{ d *fakeDevice }

func (r fakeReader) ReadAt(p []byte, off int64) (int, error) {
	d := r.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return 0, d.err
	}
	n, err := bytes.NewReader(d.media).ReadAt(p, off)
	for lba := uint64(off) / uint64(d.bs); int64(lba)*int64(d.bs) < off+int64(n); lba++ {
		if b, ok := d.cache[lba]; ok {
			at := int64(lba)*int64(d.bs) - off
			copy(p[max(at, 0):n], b[max(-at, 0):])
		}
	}
	return n, err
}

func (d *fakeDevice) WriteBlocks(_ context.Context, p []byte, lba uint64, fua bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(p) > 0 {
		if d.budget == 0 {
			return errPower
		}
		d.budget--
		d.writes++
		b := bytes.Clone(p[:d.bs])
		if fua {
			copy(d.media[lba*uint64(d.bs):], b)
			delete(d.cache, lba)
		} else {
			if _, ok := d.cache[lba]; !ok {
				d.order = append(d.order, lba)
			}
			d.cache[lba] = b
		}
		p, lba = p[d.bs:], lba+1
	}
	return nil
}

func (d *fakeDevice) Flush(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.budget == 0 {
		return errPower
	}
	d.flushes++
	for lba, b := range d.cache {
		copy(d.media[lba*uint64(d.bs):], b)
	}
	d.cache, d.order = map[uint64][]byte{}, nil
	return nil
}

// noise is n bytes that look like nothing, the same for the same seed.
func noise(seed uint64, n int64) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1})
	_, _ = r.Read(b)
	return b
}
