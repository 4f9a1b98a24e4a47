package controller

import (
	"context"
	"testing"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// The cost of a command beside its data.
func BenchmarkRead512(b *testing.B) {
	c := newDrive(b).connect()
	cmd, buf := nvme.Read(1, 0, 1, 512), make([]byte, 512)
	for b.Loop() {
		if _, err := c.IO(context.Background(), &cmd, buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPreprocess(b *testing.B) {
	c := newDrive(b).connect()
	reserve(b, c, 64<<10)
	p := cs.Preprocess{Ranges: make([]cs.Range, 6), Copies: []cs.Copy{{NSID: 1, NLB: 1}}, Args: make([]byte, 64)}
	data, err := p.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	cmd := cs.PreprocessCommand(uint32(len(data)))
	for b.Loop() {
		if _, err := c.IO(context.Background(), &cmd, data); err != nil {
			b.Fatal(err)
		}
	}
}
