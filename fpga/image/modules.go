package image

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/fpga/operator/wasm"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
)

// Limits of the modules of an image. Each module has the limits of package format besides.
const (
	MaxModules      = 16
	MaxModuleName   = 64      // bytes
	MaxModulesBytes = 4 << 20 // of all modules together
)

// Module is a WebAssembly module with operators of one's own. Programs name it by its digest; its name is for people.
type Module struct {
	Name  string `json:"name"` // 1 to MaxModuleName bytes of UTF-8 without NUL
	Bytes []byte `json:"wasm"` // at most format.MaxModule bytes
}

// Digest returns the SHA-256 by which programs name the module.
func (m *Module) Digest() program.ModuleDigest { return sha256.Sum256(m.Bytes) }

// Functions returns the functions of the module that can be operators, each with its signature, as
// "add(int64, int64) -> int64". A module that is refused has none.
func (m *Module) Functions() []string {
	list := []string{}
	parsed, err := format.Parse(m.Bytes)
	if err != nil {
		return list
	}
	names, signatures := parsed.Exports()
	for i, name := range names {
		list = append(list, name+signatures[i].String())
	}
	return list
}

// ModuleBytes returns the modules by digest, as an engine takes them. It shares the modules' bytes.
func (s *Spec) ModuleBytes() program.Modules {
	if len(s.Modules) == 0 {
		return nil
	}
	all := make(program.Modules, len(s.Modules))
	for i := range s.Modules {
		all[s.Modules[i].Digest()] = s.Modules[i].Bytes
	}
	return all
}

// AddModule adds a module in its place among the others, and the unit that runs modules where the image lacks it.
func (s *Spec) AddModule(m Module) {
	at, _ := slices.BinarySearchFunc(s.Modules, m, func(a, b Module) int { return strings.Compare(a.Name, b.Name) })
	s.Modules = slices.Insert(slices.Clone(s.Modules), at, m)
	number := uint16(wasm.Unit)
	at, found := slices.BinarySearchFunc(s.Units, number, func(u Unit, n uint16) int { return int(u.Number) - int(n) })
	if found {
		return
	}
	unit, compute, kernel := unitParts(program.UnitRef{Unit: wasm.Unit, Version: wasm.Unit.Version()})
	s.Units = slices.Insert(slices.Clone(s.Units), at, unit)
	s.Compute = append(slices.Clone(s.Compute), compute)
	s.Kernels = append(slices.Clone(s.Kernels), kernel)
}

// The MODULES section holds, little-endian: the number of modules u64; for each module, ascending by name, its name
// padded with NUL and its length u64; the modules, one behind the other.
const (
	modulesHeader = 8
	moduleEntry   = MaxModuleName + 8
)

// checkModules holds the modules against their limits and the rules of package format.
func (s *Spec) checkModules(haveUnit bool) error {
	bad := func(err error, text string, args ...any) error {
		return &Error{Section: KindModules.tableName(), Detail: fmt.Sprintf(text, args...), Err: err}
	}
	if len(s.Modules) > MaxModules {
		return bad(ErrTooLarge, "%d modules, at most %d", len(s.Modules), MaxModules)
	}
	if len(s.Modules) > 0 && !haveUnit {
		return bad(ErrContent, "modules, and no unit %v that runs them", wasm.Unit)
	}
	total := 0
	seen := make(map[program.ModuleDigest]string, len(s.Modules))
	for i := range s.Modules {
		m := &s.Modules[i]
		if len(m.Name) == 0 || len(m.Name) > MaxModuleName || !utf8.ValidString(m.Name) ||
			strings.ContainsRune(m.Name, 0) {
			return bad(ErrContent, "module %d: a name of %d bytes, want 1 to %d of UTF-8 and no NUL", i, len(m.Name),
				MaxModuleName)
		}
		if i > 0 && m.Name <= s.Modules[i-1].Name {
			return bad(ErrContent, "module names must ascend: %q behind %q", m.Name, s.Modules[i-1].Name)
		}
		if total += len(m.Bytes); total > MaxModulesBytes {
			return bad(ErrTooLarge, "more than %d bytes of modules", MaxModulesBytes)
		}
		if _, err := format.Parse(m.Bytes); err != nil {
			return bad(ErrContent, "module %q: %v", m.Name, err)
		}
		if other, twice := seen[m.Digest()]; twice {
			return bad(ErrContent, "modules %q and %q are the same", other, m.Name)
		}
		seen[m.Digest()] = m.Name
	}
	return nil
}

// appendModules appends the content of the section.
func appendModules(b []byte, modules []Module) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(len(modules)))
	for i := range modules {
		var name [MaxModuleName]byte
		copy(name[:], modules[i].Name)
		b = append(b, name[:]...)
		b = le.AppendUint64(b, uint64(len(modules[i].Bytes)))
	}
	for i := range modules {
		b = append(b, modules[i].Bytes...)
	}
	return b
}

// parseModules reads the section. The modules share its bytes.
func parseModules(s *section) ([]Module, error) {
	le := binary.LittleEndian
	if len(s.data) < modulesHeader {
		return nil, refuseSection(s, ErrLayout, fmt.Sprintf("%d bytes, want %d at least", len(s.data), modulesHeader))
	}
	n := le.Uint64(s.data)
	switch {
	case n == 0:
		return nil, refuseSection(s, ErrLayout, "holds no module")
	case n > MaxModules:
		return nil, refuseSection(s, ErrTooLarge, fmt.Sprintf("%d modules, at most %d", n, MaxModules))
	case len(s.data) < modulesHeader+moduleEntry*int(n):
		return nil, refuseSection(s, ErrLayout, "list of modules ends behind the end")
	}
	rest := s.data[modulesHeader+moduleEntry*int(n):]
	modules := make([]Module, n)
	for i := range modules {
		entry := s.data[modulesHeader+moduleEntry*i:][:moduleEntry]
		name := entry[:MaxModuleName]
		if !isZeroPadded(name) {
			return nil, refuseSection(s, ErrLayout, fmt.Sprintf("module %d: name is not padded with NUL", i))
		}
		size := le.Uint64(entry[MaxModuleName:])
		if size > uint64(len(rest)) {
			return nil, refuseSection(s, ErrLayout, fmt.Sprintf("module %d ends behind the end", i))
		}
		modules[i] = Module{Name: strings.TrimRight(string(name), "\x00"), Bytes: rest[:size:size]}
		rest = rest[size:]
	}
	if len(rest) > 0 {
		return nil, refuseSection(s, ErrLayout, fmt.Sprintf("%d bytes behind the last module", len(rest)))
	}
	return modules, nil
}
