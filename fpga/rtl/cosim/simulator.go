package cosim

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/millrace/millrace/fpga/rtl"
)

// Simulator is one simulated unit, a process of its own.
type Simulator struct {
	unit    rtl.Unit
	process *exec.Cmd
	input   io.WriteCloser
	output  io.Reader
	said    *bytes.Buffer // on standard error
}

// Stream is what goes through the unit in one run.
type Stream struct {
	Words      []uint64 // the transfers, each in as many words as the unit's input takes
	InputSeed  uint32   // InputSeed makes waits between two transfers; 0: none.
	OutputSeed uint32   // OutputSeed makes waits between two results; 0: none.
}

// greeting is what a simulator writes before the digest.
const greeting = "MRTL2"

// Start starts a program that Build made of the unit. The program ends with Close, or when the context ends.
func Start(ctx context.Context, unit rtl.Unit, program string) (*Simulator, error) {
	digest, err := unit.Digest()
	if err != nil {
		return nil, err
	}
	s := &Simulator{unit: unit, process: exec.CommandContext(ctx, program), said: new(bytes.Buffer)}
	s.process.Stderr = s.said
	if s.input, err = s.process.StdinPipe(); err != nil {
		return nil, err
	}
	if s.output, err = s.process.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("cosim: start unit %s: %w", unit.Name, err)
	}
	hello := make([]byte, len(greeting)+len(digest))
	if _, err := io.ReadFull(s.output, hello); err != nil {
		return nil, errors.Join(s.failure("greet", err), s.Close())
	}
	if string(hello) != greeting+digest {
		return nil, errors.Join(fmt.Errorf("cosim: the simulator of unit %s was made of other sources: %q",
			unit.Name, hello), s.Close())
	}
	return s, nil
}

// Configure writes the registers and tables of a setup.
func (s *Simulator) Configure(setup rtl.Setup) error {
	if setup.Unit != s.unit.Name {
		return fmt.Errorf("cosim: a setup of unit %s was given to unit %s", setup.Unit, s.unit.Name)
	}
	frames := make([]byte, 0, 11*len(setup.Writes))
	for _, write := range setup.Writes {
		frames = append(frames, 'W')
		frames = binary.LittleEndian.AppendUint16(frames, write.Address)
		frames = binary.LittleEndian.AppendUint64(frames, write.Data)
	}
	if _, err := s.input.Write(frames); err != nil {
		return s.failure("write registers", err)
	}
	return nil
}

// Reset resets the unit; its registers and tables stay.
func (s *Simulator) Reset() error {
	if _, err := s.input.Write([]byte{'R'}); err != nil {
		return s.failure("reset", err)
	}
	return nil
}

// Run streams transfers through the unit and returns the results, each in as many words as the unit's output takes,
// with the cycles from the first in which a transfer was offered to the one in which the last result left, both
// included.
func (s *Simulator) Run(stream Stream) (results []uint64, cycles uint64, err error) {
	words, outWords := rtl.TransferWords(s.unit.Input), rtl.TransferWords(s.unit.Output)
	if len(stream.Words)%words != 0 {
		return nil, 0, fmt.Errorf("cosim: %d words are no transfers of %d words", len(stream.Words), words)
	}
	frame := append(make([]byte, 0, 13+8*len(stream.Words)), 'D')
	frame = binary.LittleEndian.AppendUint32(frame, uint32(len(stream.Words)/words))
	frame = binary.LittleEndian.AppendUint32(frame, stream.InputSeed)
	frame = binary.LittleEndian.AppendUint32(frame, stream.OutputSeed)
	for _, word := range stream.Words {
		frame = binary.LittleEndian.AppendUint64(frame, word)
	}
	if _, err := s.input.Write(frame); err != nil {
		return nil, 0, s.failure("send transfers", err)
	}
	head := make([]byte, 16)
	if _, err := io.ReadFull(s.output, head); err != nil {
		return nil, 0, s.failure("read results", err)
	}
	answer := make([]byte, 8*outWords*int(binary.LittleEndian.Uint64(head[8:])))
	if _, err := io.ReadFull(s.output, answer); err != nil {
		return nil, 0, s.failure("read results", err)
	}
	if cycles = binary.LittleEndian.Uint64(head); cycles == 0 && len(stream.Words) > 0 {
		return nil, 0, fmt.Errorf("cosim: unit %s stood still, or made results without end: seeds %d and %d", s.unit.Name,
			stream.InputSeed, stream.OutputSeed)
	}
	results = make([]uint64, len(answer)/8)
	for i := range results {
		results[i] = binary.LittleEndian.Uint64(answer[8*i:])
	}
	return results, cycles, nil
}

// Close ends the simulator.
func (s *Simulator) Close() error {
	err := s.input.Close()
	if waited := s.process.Wait(); waited != nil {
		err = errors.Join(err, fmt.Errorf("cosim: unit %s: %w: %s", s.unit.Name, waited, s.said))
	}
	return err
}

func (s *Simulator) failure(doing string, err error) error {
	return fmt.Errorf("cosim: unit %s: %s: %w: %s", s.unit.Name, doing, err, s.said)
}
