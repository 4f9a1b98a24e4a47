package sdk

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// vendorSet computes with the vendor commands: one Preprocess moves and executes.
type vendorSet struct {
	d       *Device
	buffers sync.Pool // Its buffers are *[]byte: descriptors on their way.

	mu   sync.Mutex        // guards held
	held map[uint64]uint64 // reservations: bytes by address
}

func (v *vendorSet) granularity() uint64 { return 1 }

func (v *vendorSet) reserve(ctx context.Context, a association, n uint64) (uint64, error) {
	cmd := cs.InRegion(cs.SLMReserve(cs.AnyAddress, n), v.d.region)
	cpl, err := v.d.trace.admin(ctx, a.conn, &cmd, nil)
	if err == nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.held == nil {
			v.held = make(map[uint64]uint64)
		}
		v.held[cpl.Result()] = n
	}
	return cpl.Result(), err
}

func (v *vendorSet) release(ctx context.Context, a association, r cs.Range) error {
	cmd := cs.SLMRelease(r.Addr, r.Len)
	_, err := v.d.trace.admin(ctx, a.conn, &cmd, nil)
	if err == nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.held, r.Addr)
	}
	return err
}

func (v *vendorSet) giveBack(ctx context.Context) error {
	v.mu.Lock()
	held := maps.Clone(v.held)
	v.mu.Unlock()
	var errs []error
	for addr, n := range held {
		errs = append(errs, v.release(ctx, v.d.anyAssociation(), cs.Range{Addr: addr, Len: n}))
	}
	return errors.Join(errs...)
}

// address sets the namespace of an I/O command. On a drive without flash that is the namespace that computes.
func (v *vendorSet) address(cmd nvme.Command) *nvme.Command {
	if v.d.info.Diskless {
		cmd.SetNSID(cs.NamespaceCompute)
	}
	return &cmd
}

func (v *vendorSet) store(ctx context.Context, a association, addr uint64, p []byte) *Future {
	cmd := v.address(cs.Store(addr, uint32(len(p))))
	return v.d.submit(ctx, a, cmd, p)
}

func (v *vendorSet) fetch(ctx context.Context, a association, addr uint64, p []byte) *Future {
	cmd := v.address(cs.Fetch(addr, uint32(len(p))))
	return v.d.submit(ctx, a, cmd, p)
}

// Sizes of a range and a copy in a Preprocess; a test holds them against cs.Preprocess.Size.
const (
	vendorRange = 16
	vendorCopy  = 32
)

func (v *vendorSet) maxArgs(copies, ranges int) int {
	return v.d.mdts - cs.PreprocessHeader - ranges*vendorRange - copies*vendorCopy
}

func (v *vendorSet) preprocess(
	ctx context.Context, a association, copies []cs.Copy, ranges []cs.Range, args []byte,
) (uint64, time.Duration, error) {
	p := cs.Preprocess{Ranges: ranges, Copies: copies, Args: args}
	buf, _ := v.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	defer v.buffers.Put(buf)
	b, err := p.AppendTo((*buf)[:0])
	if err != nil {
		return 0, 0, err
	}
	*buf = b
	cmd := v.address(cs.InRegion(cs.PreprocessCommand(uint32(len(b))), v.d.region))
	cpl, err := v.d.submit(ctx, a, cmd, b).Wait()
	return cpl.Result(), 0, err // the result block reports the moves
}
