package cpu_test

import (
	"testing"

	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/target/targettest"
)

// TestConformance holds the CPU's target to the contract, with a partition in memory and with one that it reads.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name   string
		mapped bool
	}{{"mapped", true}, {"read", false}} {
		t.Run(c.name, func(t *testing.T) {
			targettest.Run(t, func(_ *testing.T, data []byte) targettest.Opened {
				o := targettest.Opened{
					Target: cpu.NewTarget(cpu.Options{Threads: 2, Processor: processor.Options{SLM: 1 << 20}}),
				}
				if c.mapped {
					o.Options = partition.Options{Bytes: data}
				}
				return o
			})
		})
	}
}
