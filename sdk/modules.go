package sdk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/program"
)

// ErrModule says that a module whose functions a program calls is not there. Errors that wrap it say which.
var ErrModule = errors.New("the module is not here")

// ModuleError says that a program calls functions of a WebAssembly module that the active image of a drive does not
// hold.
type ModuleError struct {
	Drive  string
	Module program.ModuleDigest
	Active image.ID     // the active image; zero: none is active
	Slots  []image.Slot // whose images hold the module
}

func (e *ModuleError) Error() string {
	if len(e.Slots) == 0 {
		return fmt.Sprintf("module %v is in no image of the drive: build one with millrace image build --wasm, and activate "+
			"it, or name it with --image for a drive made of files; or use the engine cpu", e.Module)
	}
	var held []string
	for _, s := range e.Slots {
		held = append(held, fmt.Sprintf("image %s in slot %d", s.Image.Short(), s.Slot))
	}
	return fmt.Sprintf("module %v is not in the active image %s, but in %s: activate that image", e.Module,
		e.Active.Short(), strings.Join(held, ", "))
}

// Unwrap returns ErrModule.
func (e *ModuleError) Unwrap() error { return ErrModule }

// checkModules returns a *ModuleError if the drive's active image lacks a module that the program names. A drive that
// does not report its images is asked nothing: it refuses the program itself.
func (d *Device) checkModules(ctx context.Context, p *program.Program) error {
	wanted := p.WasmModules()
	if len(wanted) == 0 {
		return nil
	}
	r, err := d.ImageLog(ctx)
	if errors.Is(err, ErrNoImageLog) {
		return nil
	}
	if err != nil {
		return err
	}
	active, _ := r.Active()
	for _, module := range wanted {
		if active.HasModule(module) {
			continue
		}
		e := &ModuleError{Drive: d.String(), Module: module, Active: active.Image}
		for i := range r.Slots {
			if r.Slots[i].HasModule(module) {
				e.Slots = append(e.Slots, r.Slots[i])
			}
		}
		return e
	}
	return nil
}
