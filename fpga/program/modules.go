package program

import (
	"encoding/hex"
	"fmt"
)

// ModuleDigest is the SHA-256 of a WebAssembly module, which identifies it.
type ModuleDigest [32]byte

// String returns the digest in hexadecimal.
func (d ModuleDigest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes the digest in hexadecimal.
func (d ModuleDigest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads 64 hexadecimal digits.
func (d *ModuleDigest) UnmarshalText(b []byte) error {
	if len(b) != 2*len(d) {
		return fmt.Errorf("module digest: %d characters, want %d hexadecimal digits", len(b), 2*len(d))
	}
	var v ModuleDigest
	if _, err := hex.Decode(v[:], b); err != nil {
		return fmt.Errorf("module digest: %w", err)
	}
	*d = v
	return nil
}

// Modules are the WebAssembly modules that an engine can run. Nothing changes them while an engine uses them.
type Modules map[ModuleDigest][]byte

// WasmModules returns the digests of the modules that the program's steps use, in order of first use, each once.
func (p *Program) WasmModules() []ModuleDigest {
	var list []ModuleDigest
	seen := map[ModuleDigest]bool{}
	for i := range p.Graphs {
		for j := range p.Graphs[i].Steps {
			if user, ok := p.Graphs[i].Steps[j].Combine.(moduleUser); ok && !seen[user.WasmModule()] {
				seen[user.WasmModule()] = true
				list = append(list, user.WasmModule())
			}
		}
	}
	return list
}
