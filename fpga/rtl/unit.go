package rtl

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Sources are the SystemVerilog files, the descriptions of the units, and the frame of a simulated unit.
//
//go:embed common/*.sv decode/*.sv transform/*.sv generated/*.sv units/*.json simulation
var Sources embed.FS

// Unit describes one unit: the content of units/NAME.json.
type Unit struct {
	Name     string   `json:"name"`     // also the name of its module and of the file
	Operator string   `json:"operator"` // Operator is one of the catalogue; empty for a unit that decodes or packs.
	About    string   `json:"about"`
	Takes    string   `json:"takes"`   // the kinds of values and the parameters that the unit has
	Top      string   `json:"top"`     // the file that holds the module
	Sources  []string `json:"sources"` // all files, packages first
	// Input and Output are the fields of a transfer, the first in the lowest bits. A unit whose fields hold one named
	// LastField makes any number of transfers of a section; every other unit makes one of each that it takes.
	Input              []Field    `json:"input"`
	Output             []Field    `json:"output"`
	InitiationInterval int        `json:"initiation_interval"` // cycles between two transfers
	Latency            int        `json:"latency"`             // cycles from a transfer's entry to its result
	Registers          []Register `json:"registers"`
	Tables             []Table    `json:"tables"`
}

// Field is a part of a transfer.
type Field struct {
	Name  string `json:"name"`
	Bits  int    `json:"bits"`
	About string `json:"about"`
}

// LastField is the name of the field that marks the last transfer of a section.
const LastField = "last"

// TransferBits returns the bits of a transfer.
func TransferBits(fields []Field) int {
	sum := 0
	for _, f := range fields {
		sum += f.Bits
	}
	return sum
}

// TransferWords returns the words of 64 bits that hold a transfer.
func TransferWords(fields []Field) int { return (TransferBits(fields) + 63) / 64 }

// LastBit returns the number of the bit that marks the last transfer of a section, and whether there is one.
func LastBit(fields []Field) (bit int, ok bool) {
	for _, f := range fields {
		if f.Name == LastField {
			return bit, true
		}
		bit += f.Bits
	}
	return 0, false
}

// Register is a word that the host writes before a column.
type Register struct {
	Unit    string `json:"unit,omitempty"` // a unit inside, whose register it is; empty: of the unit itself
	Name    string `json:"name"`
	Address uint16 `json:"address"`
	Bits    int    `json:"bits"`
	About   string `json:"about"`
}

// Table is a memory that the host writes before a column: Entries words from Address on.
type Table struct {
	Name    string `json:"name"`
	Address uint16 `json:"address"`
	Entries int    `json:"entries"`
	Bits    int    `json:"bits"`
	About   string `json:"about"`
}

// Units returns the description of every unit, by name.
func Units() ([]Unit, error) {
	files, err := fs.Glob(Sources, "units/*.json")
	if err != nil {
		return nil, err
	}
	units := make([]Unit, 0, len(files))
	for _, file := range files {
		u, err := readUnit(file)
		if err != nil {
			return nil, fmt.Errorf("rtl: %s: %w", file, err)
		}
		units = append(units, u)
	}
	return units, nil
}

// Named returns the description of the unit with a name.
func Named(name string) (Unit, error) {
	u, err := readUnit("units/" + name + ".json")
	if err != nil {
		return Unit{}, fmt.Errorf("rtl: unit %q: %w", name, err)
	}
	return u, nil
}

func readUnit(file string) (Unit, error) {
	text, err := Sources.ReadFile(file)
	if err != nil {
		return Unit{}, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var u Unit
	if err := decoder.Decode(&u); err != nil {
		return Unit{}, err
	}
	return u, u.check(strings.TrimSuffix(path.Base(file), ".json"))
}

// check returns an error if the description contradicts itself.
func (u Unit) check(name string) error {
	switch {
	case u.Name != name:
		return fmt.Errorf("the unit is named %q, and its file %q", u.Name, name)
	case !slices.Contains(u.Sources, u.Top):
		return fmt.Errorf("%s is not among the sources", u.Top)
	case u.InitiationInterval < 1 || u.Latency < 1:
		return fmt.Errorf("initiation interval %d and latency %d must be at least 1", u.InitiationInterval, u.Latency)
	case TransferBits(u.Input) == 0 || TransferBits(u.Output) == 0:
		return errors.New("a transfer of its input or of its output has no bits")
	}
	for _, f := range slices.Concat(u.Input, u.Output) {
		if f.Bits < 1 || f.Name == LastField && f.Bits != 1 {
			return fmt.Errorf("field %s has %d bits", f.Name, f.Bits)
		}
	}
	if _, in := LastBit(u.Input); in {
		if _, out := LastBit(u.Output); !out {
			return fmt.Errorf("the input has field %s, and the output has not", LastField)
		}
	}
	taken := make(map[uint16]string)
	take := func(address uint16, owner string, bits int) error {
		if other, ok := taken[address]; ok {
			return fmt.Errorf("address %d belongs to %s and to %s", address, other, owner)
		}
		if bits < 1 || bits > 64 {
			return fmt.Errorf("%s has %d bits; a register has 1 to 64", owner, bits)
		}
		taken[address] = owner
		return nil
	}
	for _, r := range u.Registers {
		if err := take(r.Address, r.Name, r.Bits); err != nil {
			return err
		}
	}
	for _, t := range u.Tables {
		for entry := range t.Entries {
			if err := take(t.Address+uint16(entry), t.Name, t.Bits); err != nil {
				return err
			}
		}
	}
	return nil
}

// Digest returns the SHA-256, in hexadecimal digits, over the names and contents of the unit's sources: the identity of
// the hardware that a recorded result belongs to.
func (u Unit) Digest() (string, error) {
	hash := sha256.New()
	for _, file := range u.Sources {
		text, err := Sources.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("rtl: unit %s: %w", u.Name, err)
		}
		fmt.Fprintf(hash, "%s %d\n", file, len(text))
		hash.Write(text)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
