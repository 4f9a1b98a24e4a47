package cosim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/internal/scratch"
)

// ErrTools says that a tool which makes simulators is missing. The error names the tool and the packages to install.
var ErrTools = errors.New("cosim: a tool that makes simulators is missing")

// ErrNotBuilt says that a folder has no simulator of a unit's present sources.
var ErrNotBuilt = errors.New("cosim: the simulator is not built")

// Tools are the programs that make simulators.
type Tools struct {
	version []byte // It is Verilator's.
}

// FindTools returns the tools of this machine. The error wraps ErrTools if one is missing.
func FindTools(ctx context.Context) (*Tools, error) {
	for _, tool := range []string{"verilator", "g++", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%w: there is no %s on the path: install Debian's packages verilator, g++ and make, or "+
				"others of these programs; simulators are then built when they are needed", ErrTools, tool)
		}
	}
	version, err := exec.CommandContext(ctx, "verilator", "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("cosim: verilator --version: %w", err)
	}
	return &Tools{version: version}, nil
}

// The frame around a simulated unit, in rtl.Sources: server includes pipes, and Verilator reads split.
const (
	server = "simulation/server.cpp"
	pipes  = "simulation/pipes.h"
	split  = "simulation/split.vlt"
)

func frameFiles() []string { return []string{server, pipes, split} }

// Find returns the path of the simulator of a unit in a folder, if Build made it there of the same sources with the
// same tools. Otherwise the error is ErrNotBuilt.
func (t *Tools) Find(unit rtl.Unit, folder string) (program string, err error) {
	digest, err := unit.Digest()
	if err != nil {
		return "", err
	}
	if program, err = t.programPath(unit, digest, folder); err != nil {
		return "", err
	}
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("unit %s: %w", unit.Name, ErrNotBuilt)
	}
	return program, nil
}

// programPath returns where the simulator of a unit is kept: a name that says all that the program is made of.
func (t *Tools) programPath(unit rtl.Unit, digest, folder string) (string, error) {
	key := sha256.New()
	fmt.Fprintf(key, "%s\n%s\n%s\n%s\n", t.version, digest, compilerFlags(unit, digest), optimisation)
	for _, name := range frameFiles() {
		frame, err := fs.ReadFile(rtl.Sources, name)
		if err != nil {
			return "", err
		}
		key.Write(frame)
	}
	return filepath.Join(folder, unit.Name+"-"+hex.EncodeToString(key.Sum(nil))[:16]), nil
}

// Build makes the simulator of a unit, or finds the one that was made of the same sources, and returns its path. The
// programs are kept in folder.
func (t *Tools) Build(ctx context.Context, unit rtl.Unit, folder string) (program string, err error) {
	program, err = t.Find(unit, folder)
	if !errors.Is(err, ErrNotBuilt) {
		return program, err
	}
	digest, err := unit.Digest()
	if err != nil {
		return "", err
	}
	if program, err = t.programPath(unit, digest, folder); err != nil {
		return "", err
	}
	temporary, err := scratch.Make("", "millrace-rtl-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, temporary.Close()) }()
	work := temporary.Path
	if err := writeSources(unit, work); err != nil {
		return "", err
	}
	simulator, err := verilate(ctx, "verilator", unit, digest, work)
	if err != nil {
		return "", err
	}
	return program, install(simulator, program)
}

// verilate has Verilator make a program of the sources in a folder, with more arguments behind its own, and returns the
// program's path, which is in the folder.
func verilate(ctx context.Context, verilator string, unit rtl.Unit, digest, work string, more ...string,
) (string, error) {
	made := filepath.Join(work, "made")
	arguments := []string{"--cc", "--exe", "--build", "-Wall", "-O3", "--x-initial", "unique",
		"-CFLAGS", compilerFlags(unit, digest), "-MAKEFLAGS", optimisation,
		"--top-module", unit.Name, "--Mdir", made, "-o", "simulator"}
	arguments = slices.Concat(arguments, more, []string{split}, unit.Sources, []string{server})
	command := exec.CommandContext(ctx, verilator, arguments...)
	command.Dir = work
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cosim: build unit %s: %w\n%s", unit.Name, err, lastLines(string(output), 20))
	}
	return filepath.Join(made, "simulator"), nil
}

// optimisation sets variables of Verilator's makefile, which stand behind -CFLAGS on the compiler's command line: of
// the code that runs in every cycle, of the code that runs once, and of Verilator's library.
const optimisation = "OPT_FAST=-O3 OPT_SLOW=-O0 OPT_GLOBAL=-O2"

// compilerFlags tells server.cpp which unit it serves.
func compilerFlags(unit rtl.Unit, digest string) string {
	lastBit := func(fields []rtl.Field) int {
		if bit, ok := rtl.LastBit(fields); ok {
			return bit
		}
		return -1
	}
	return fmt.Sprintf(`-DUNIT=V%s -DUNIT_HEADER='"V%s.h"' -DSOURCE_DIGEST='"%s"' `+
		`-DINPUT_BITS=%d -DOUTPUT_BITS=%d -DINPUT_LAST=%d -DOUTPUT_LAST=%d`, unit.Name, unit.Name, digest,
		rtl.TransferBits(unit.Input), rtl.TransferBits(unit.Output), lastBit(unit.Input), lastBit(unit.Output))
}

// writeSources writes the unit's sources and the server into a folder.
func writeSources(unit rtl.Unit, folder string) error {
	for _, name := range slices.Concat(unit.Sources, frameFiles()) {
		text, err := fs.ReadFile(rtl.Sources, name)
		if err != nil {
			return fmt.Errorf("cosim: unit %s: %w", unit.Name, err)
		}
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// install copies a program to its place, which has all of it or nothing, whoever else builds the same.
func install(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	partial, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".partial-")
	if err != nil {
		return err
	}
	_, err = partial.Write(content)
	err = errors.Join(err, partial.Chmod(0o755), partial.Close())
	if err == nil {
		err = os.Rename(partial.Name(), to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(partial.Name()))
	}
	return nil
}

// lastLines returns the last n lines of a text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
