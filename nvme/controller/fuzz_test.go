package controller

import (
	"context"
	"testing"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/features"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/tracetest"
)

// FuzzController feeds any submission entry and any data to the admin queue and to an I/O queue. Every command must
// complete with its identifier, nothing may panic, and memory that another association holds must stay as it is.
func FuzzController(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s.queue, s.cmd[:], s.data)
	}
	for _, s := range linuxSeeds(f) {
		f.Add(s.queue, s.cmd[:], s.data)
	}
	f.Fuzz(func(t *testing.T, queue byte, sqe, data []byte) {
		d := newDrive(t, withAccessesThatEnd(t), func(o *Options) {
			o.Flash, o.Compute.(*stubCompute).slm = newFlash(64<<10), make([]byte, 256<<10)
		})
		other := d.connect()
		theirs := reserve(t, other, 64<<10)
		copy(d.compute.slm[theirs:], "theirs")
		c := d.enabled()
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond) // an event request waits
		defer cancel()
		reserve := cs.SLMReserve(128<<10, 128<<10)
		c.Execute(ctx, 0, &reserve, nil)
		var cmd nvme.Command
		copy(cmd[:], sqe)
		q := uint16(queue & 1)
		tr, st := c.Parse(q, &cmd)
		if st.OK() {
			if tr.Length > MDTS || tr.Length > 0 && tr.Direction != nvme.HostToController &&
				tr.Direction != nvme.ControllerToHost {
				t.Fatalf("transfer of %d bytes, %s", tr.Length, tr.Direction)
			}
			buf := make([]byte, tr.Length)
			copy(buf, data)
			out := c.Execute(ctx, q, &cmd, buf)
			if out.CID() != cmd.CID() {
				t.Fatalf("command %d completed as %d", cmd.CID(), out.CID())
			}
		}
		c.Execute(ctx, q, &cmd, data) // with data of any length
		if string(d.compute.slm[theirs:theirs+6]) != "theirs" {
			t.Fatalf("another association's memory was changed by %s", &cmd)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if d.slm.Reserved() != 64<<10 {
			t.Fatalf("%d bytes are left", d.slm.Reserved())
		}
	})
}

// linuxSeeds has what Linux sends: every entry, with the data in its capsule.
func linuxSeeds(t testing.TB) (out []seed) {
	t.Helper()
	const capsule, entry, common = 4, 64, 8 // of a PDU: the type, and sizes of a submission entry and the common header
	traces, err := tracetest.Golden()
	if err != nil {
		t.Fatal(err)
	}
	for _, pdus := range traces {
		for _, p := range pdus {
			if p.Bytes[0] != capsule || p.Bytes[common] == fabrics.Opcode {
				continue
			}
			s := seed{queue: byte(min(p.Conn, 1)), cmd: nvme.Command(p.Bytes[common : common+entry])}
			if at := p.Offset(); at > 0 {
				s.data = p.Bytes[at:][:s.cmd.DataLength()]
			}
			out = append(out, s)
		}
	}
	return out
}

type seed struct {
	queue byte
	cmd   nvme.Command
	data  []byte
}

// seeds has every command once.
func seeds() []seed {
	p := cs.Preprocess{
		Ranges: []cs.Range{{Addr: 128 << 10, Len: 64}, {Addr: 129 << 10, Len: 64}}, Copies: []cs.Copy{{NSID: 1, NLB: 2,
			SLBA: 3, Dest: 140 << 10}},
		Args: []byte("args"),
	}
	pre, _ := p.Marshal()
	exec, _ := cs.Execute(0, p.Ranges, p.Args)
	set, _ := cs.CreateRangeSet(p.Ranges)
	copies, _ := cs.MemoryCopies(p.Copies, 512)
	dsm, ranges := nvme.Deallocate(1, []nvme.DatasetRange{{SLBA: 1, Blocks: 2}})
	mem := cs.MemoryCopy{Len: 8, Dest: 150 << 10, Sources: 1, Format: cs.CopyFormatMemory}
	block := make([]byte, 512)
	hb := nvme.SetFeature(nvme.FeatureHostBehavior, 0)
	hb.SetData(512)
	id := nvme.GetFeature(nvme.FeatureHostID)
	id.SetDW(11, 1)
	id.SetData(16)
	out := []seed{
		{1, nvme.Read(1, 0, 1, 512), nil}, {1, nvme.Write(1, 0, 1, 512, true), block}, {1, nvme.Compare(1, 0, 1, 512), block},
		{1, nvme.WriteZeroes(1, 0, 9, true), nil}, {1, nvme.Flush(nvme.AllNamespaces), nil}, {1, dsm, ranges},
		{1, cs.PreprocessCommand(uint32(len(pre))), pre}, {1, cs.Fetch(128<<10, 5), nil}, {1, cs.Store(128<<10, 5),
			[]byte("hello")},
		{1, exec.Command, exec.Data}, {1, copies[0].Command, copies[0].Data}, {1, cs.MemoryRead(128<<10, 8), nil},
		{1, cs.MemoryWrite(128<<10, 8), block[:8]}, {1, cs.MemoryFill(128<<10, 8, 1), nil}, {1,
			cs.ExecuteSet(0, 1, nil).Command, nil},
		{1, mem.Command(), cs.MemorySource{NSID: 2, Addr: 128 << 10, Len: 8}.AppendTo(nil)},
		{0, set.Command, set.Data}, {0, cs.DeleteRangeSet(1), nil}, {0, cs.Activation(0, false), nil}, {0,
			cs.Activation(0, true), nil},
		{0, cs.LoadProgram(cs.Chunk{Slot: 1, Size: 4, Len: 4}), block[:4]}, {0, cs.UnloadProgram(1), nil},
		{0, cs.ImageDownload(cs.Chunk{Slot: 1, Size: 4, Len: 4}), block[:4]},
		{0, cs.ImageActivate(1), nil}, {0, cs.InRegion(cs.ImageActivate(1), 1), nil},
		{0, cs.InRegion(cs.SLMReserve(cs.AnyAddress, 4096), 6), nil},
		{0, cs.SLMReserve(cs.AnyAddress, 4096), nil}, {0, cs.SLMRelease(128<<10, 128<<10), nil}, {0, nvme.KeepAlive(), nil},
		{0, nvme.Abort(1, 0), nil}, {0, nvme.AsyncEventRequest(), nil}, {0, hb, block}, {0, id, nil},
		{0, getLogCSI(nvme.LogEffects, 3, 8, 64), nil},
	}
	for cns := range uint8(0x20) {
		out = append(out, seed{0, nvme.Identify(cns, 1, 0), nil})
	}
	for _, lid := range []uint8{0, 1, 2, 3, 4, 5, 0x82, 0x83, 0x84, 0xc0} {
		out = append(out, seed{0, nvme.GetLog(lid, 0, 0, 4096), nil})
	}
	for fid := range features.Capabilities {
		out = append(out, seed{0, nvme.GetFeature(fid), nil}, seed{0, nvme.SetFeature(fid, 1), nil})
	}
	return out
}
