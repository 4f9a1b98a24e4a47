package health

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/target"
)

// memoryBytes is how much of the drive's memory is tried; of a drive with little memory it is half of it.
const memoryBytes = 1 << 20

// reserve reserves local memory. It skips the step where the drive has none free.
func (v *validation) reserve(ctx context.Context, n uint64) (*sdk.SLM, error) {
	if !v.dev.HasCompute() {
		return nil, skipf("the drive does not compute")
	}
	slm, err := v.dev.ReserveSLM(ctx, n)
	if errors.Is(err, sdk.ErrSLMFull) {
		return nil, skipf("others hold the drive's memory: %v", err)
	}
	return slm, err
}

// release releases memory, even when the step's time is up.
func (v *validation) release(ctx context.Context, slm *sdk.SLM) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.o.Step)
	defer cancel()
	return slm.Release(ctx)
}

// memory stores bytes in the drive's memory and fetches them.
func (v *validation) memory(ctx context.Context) (_ string, err error) {
	n := uint64(memoryBytes)
	if c := v.dev.Compute(); c != nil {
		n = min(n, c.SLMSize()/2)
	}
	slm, err := v.reserve(ctx, n)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, v.release(ctx, slm)) }()
	want := randomBytes(int(n))
	got := make([]byte, n)
	if err := errors.Join(slm.Store(ctx, 0, want), slm.Fetch(ctx, 0, got)); err != nil {
		return "", err
	}
	if err := compare(want, got); err != nil {
		return "", fmt.Errorf("what was stored is fetched otherwise: %w", err)
	}
	// A store that begins and ends at no boundary must not change its neighbours.
	piece := randomBytes(int(n)/4 + 1)
	copy(want[1001:], piece)
	if err := errors.Join(slm.Store(ctx, 1001, piece), slm.Fetch(ctx, 0, got)); err != nil {
		return "", err
	}
	if err := compare(want, got); err != nil {
		return "", fmt.Errorf("a piece at an odd address changed its neighbours: %w", err)
	}
	return fmt.Sprintf("%d bytes stored, fetched and verified", n), nil
}

// vectorMemory is where the ranges of a known answer lie in reserved memory.
type vectorMemory struct {
	slm     *sdk.SLM
	ranges  []cs.Range
	offsets []uint64
	spare   uint64 // offset of the memory that is left behind the ranges
}

// page is the size of which every range is a multiple.
const page = 4096

// prepareVector reserves memory for a known answer, and spare bytes behind it, and stores the answer's program,
// input and tables there.
func (v *validation) prepareVector(ctx context.Context, a *image.Vector, spare int) (*vectorMemory, error) {
	p := &vectorMemory{}
	at := uint64(0)
	sizes := []int{len(a.Program), len(a.Input), int(a.Dict), int(a.Scratch), len(a.Output),
		wire.ResultSize(len(a.Args) / wire.SliceTask)}
	if len(a.Tables) > 0 {
		sizes = append(sizes, len(a.Tables))
	}
	for _, n := range sizes {
		p.offsets = append(p.offsets, at)
		at += uint64(n+page) / page * page // a range has at least one page
	}
	p.spare = at
	slm, err := v.reserve(ctx, at+uint64(spare))
	if err != nil {
		return nil, err
	}
	p.slm = slm
	for i, off := range p.offsets {
		end := p.spare
		if i+1 < len(p.offsets) {
			end = p.offsets[i+1]
		}
		p.ranges = append(p.ranges, slm.Range(off, end-off))
	}
	for i, b := range [][]byte{a.Program, a.Input, target.RangeTables: a.Tables} {
		if len(b) == 0 {
			continue
		}
		if err := slm.Store(ctx, p.offsets[i], b); err != nil {
			return nil, errors.Join(err, v.release(ctx, slm))
		}
	}
	return p, nil
}

// stockImage returns this build's stock image.
func stockImage() (*image.Image, error) {
	b, err := stock.Image()
	if err != nil {
		return nil, err
	}
	return image.Parse(b)
}

// move makes the drive move blocks of its flash into its memory, and compares them with the blocks as they are read.
func (v *validation) move(ctx context.Context) (_ string, err error) {
	if !v.dev.HasCompute() {
		return "", skipf("the drive does not compute")
	}
	if v.dev.Diskless() {
		return "", skipf("%s", noFlash)
	}
	m, err := stockImage()
	if err != nil {
		return "", err
	}
	block := v.dev.BlockSize()
	n := int(min(64<<10, v.dev.Size()/2)) / block * block
	if n == 0 {
		return "", skipf("the drive is too small")
	}
	a := &m.Spec.SelfTest[0]
	p, err := v.prepareVector(ctx, a, n)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, v.release(ctx, p.slm)) }()
	if err := p.slm.Store(ctx, p.spare, randomBytes(n)); err != nil {
		return "", err
	}
	// The second half of the range is moved first, so that a drive that ignores the order of moves is found.
	half := uint32(n / block / 2)
	total := uint32(n / block)
	copies := []cs.Copy{
		{NSID: cs.NamespaceNVM, SLBA: uint64(half), NLB: total - half,
			Dest: p.slm.Addr() + p.spare + uint64(half)*uint64(block)},
	}
	if half > 0 {
		copies = append(copies, cs.Copy{NSID: cs.NamespaceNVM, SLBA: 0, NLB: half, Dest: p.slm.Addr() + p.spare})
	}
	// The program that runs after the moves is not what this step tries: how it ends does not matter.
	if _, err := v.dev.Compute().Preprocess(ctx, copies, p.ranges, a.Args); err != nil {
		return "", err
	}
	want, got := make([]byte, n), make([]byte, n)
	if err := errors.Join(v.dev.ReadBlocks(ctx, want, 0), p.slm.Fetch(ctx, p.spare, got)); err != nil {
		return "", err
	}
	if err := compare(want, got); err != nil {
		return "", fmt.Errorf("what was moved is not what lies on the flash: %w", err)
	}
	return fmt.Sprintf("%d bytes moved from flash to memory and verified", n), nil
}

// selfTest runs the stock image's known answers with commands, as a job runs.
func (v *validation) selfTest(ctx context.Context) (string, error) {
	if !v.dev.HasCompute() {
		return "", skipf("the drive does not compute")
	}
	m, err := stockImage()
	if err != nil {
		return "", err
	}
	id := fmt.Sprintf("%016x", m.ID.PUID())
	active := ""
	for _, p := range v.dev.Info().Programs {
		if p.Active {
			active = p.PUID
		}
	}
	if active != id {
		return "", skipf("the active image is %q, not this build's stock image %s, whose answers are known", active, id)
	}
	for i := range m.Spec.SelfTest {
		if err := v.checkVector(ctx, &m.Spec.SelfTest[i]); err != nil {
			return "", fmt.Errorf("known answer %q: %w", m.Spec.SelfTest[i].Name, err)
		}
	}
	return fmt.Sprintf("%d known answers of image %s", len(m.Spec.SelfTest), id), nil
}

// checkVector runs one known answer and compares the output.
func (v *validation) checkVector(ctx context.Context, a *image.Vector) (err error) {
	p, err := v.prepareVector(ctx, a, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.release(ctx, p.slm)) }()
	state, err := v.dev.Compute().Preprocess(ctx, nil, p.ranges, a.Args)
	if err != nil {
		return err
	}
	if uint64(state) != a.State {
		return fmt.Errorf("it ended in %s, not %s", state, program.State(a.State))
	}
	got := make([]byte, len(a.Output))
	if err := p.slm.Fetch(ctx, p.offsets[4], got); err != nil {
		return err
	}
	return compare(a.Output, got)
}
