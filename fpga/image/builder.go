package image

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/operator/wasm"
)

// Build lays an image out. The bytes follow from the Spec alone.
func Build(s *Spec) ([]byte, error) {
	if err := s.checkSpec(); err != nil {
		return nil, err
	}
	h := &header{minor: Minor, time: s.Time, iface: s.Interface}
	if len(s.Modules) > 0 {
		h.minor = MinorModules
	}
	if s.Parameters != nil {
		h.minor = MinorParameters
	}
	if len(s.Platform) == 0 || len(s.Platform) > platformSize || strings.ContainsRune(s.Platform, 0) {
		return nil, &Error{Detail: "platform name must have 1 to 64 bytes and no NUL", Err: ErrContent}
	}
	copy(h.platform[:], s.Platform)
	var sections []section
	for _, part := range []struct {
		kind  Kind
		value any
		empty bool
	}{
		{KindUnits, s.Units, false},
		{KindIPLayout, s.Compute, len(s.Compute) == 0},
		{KindMemTopology, s.Memories, len(s.Memories) == 0},
		{KindConnectivity, s.Connections, len(s.Connections) == 0},
		{KindClocks, s.Clocks, len(s.Clocks) == 0},
		{KindPartition, s.Partition, false},
		{KindKernels, s.Kernels, len(s.Kernels) == 0},
		{KindResources, s.Resources, len(s.Resources.Units) == 0},
		{KindParameters, s.Parameters, s.Parameters == nil},
		{KindSelfTest, s.SelfTest, len(s.SelfTest) == 0},
		{KindBuild, s.Build, s.Build == BuildInfo{}},
	} {
		if part.empty {
			continue
		}
		data, err := json.Marshal(part.value)
		if err != nil {
			return nil, &Error{Section: part.kind.tableName(), Detail: err.Error(), Err: ErrContent}
		}
		if len(data) > MaxJSON {
			return nil, &Error{Section: part.kind.tableName(), Detail: fmt.Sprintf("%d bytes", len(data)), Err: ErrTooLarge}
		}
		sections = append(sections, newSection(part.kind, data))
	}
	if len(s.Modules) > 0 {
		sections = append(sections, newSection(KindModules, appendModules(nil, s.Modules)))
	}
	if len(s.User) > 0 {
		sections = append(sections, newSection(KindUser, s.User))
	}
	slices.SortFunc(sections, func(a, b section) int { return cmp.Compare(a.kind.orderInFile(), b.kind.orderInFile()) })
	b := encodeImage(h, sections)
	if len(b) > MaxSize {
		return nil, &Error{Detail: fmt.Sprintf("%d bytes", len(b)), Err: ErrTooLarge}
	}
	return b, nil
}

func newSection(k Kind, data []byte) section {
	s := section{kind: k, data: data}
	if k.isRequired() {
		s.flags = Required
	}
	copy(s.name[:], k.tableName())
	return s
}

// checkSpec holds a Spec against the rules that Build and Parse share.
func (s *Spec) checkSpec() error {
	bad := func(k Kind, format string, args ...any) error {
		return &Error{Section: k.tableName(), Detail: fmt.Sprintf(format, args...), Err: ErrContent}
	}
	if len(s.Units) == 0 {
		return bad(KindUnits, "no units")
	}
	units := make(map[uint16]bool, len(s.Units))
	for i, u := range s.Units {
		if u.Number == 0 || u.Name == "" || u.Version == 0 {
			return bad(KindUnits, "unit %d lacks number, name or version", i)
		}
		if i > 0 && u.Number <= s.Units[i-1].Number {
			return bad(KindUnits, "unit numbers must ascend: %d behind %d", u.Number, s.Units[i-1].Number)
		}
		if u.Source != "" {
			if d, err := hex.DecodeString(u.Source); err != nil || len(d) != 32 || strings.ToLower(u.Source) != u.Source {
				return bad(KindUnits, "unit %d: source is not a SHA-256 in lower case", u.Number)
			}
		}
		units[u.Number] = true
	}
	compute := make(map[string]bool, len(s.Compute))
	for _, c := range s.Compute {
		if c.Name == "" || compute[c.Name] {
			return bad(KindIPLayout, "compute unit name %q is empty or used twice", c.Name)
		}
		if !units[c.Unit] {
			return bad(KindIPLayout, "compute unit %q is an instance of unit %d, which the image lacks", c.Name, c.Unit)
		}
		compute[c.Name] = true
	}
	memories := make(map[string]bool, len(s.Memories))
	for _, m := range s.Memories {
		if m.Name == "" || memories[m.Name] {
			return bad(KindMemTopology, "memory name %q is empty or used twice", m.Name)
		}
		memories[m.Name] = true
	}
	for _, c := range s.Connections {
		if !compute[c.Compute] || !memories[c.Memory] {
			return bad(KindConnectivity, "connection from %q to %q names what the image lacks", c.Compute, c.Memory)
		}
	}
	for _, c := range s.Clocks {
		if c.Granted > c.Screened {
			return bad(KindClocks, "clock %q runs at %d kHz, above the screened %d", c.Name, c.Granted, c.Screened)
		}
	}
	for _, k := range s.Kernels {
		if !units[k.Unit] {
			return bad(KindKernels, "kernel %q is of unit %d, which the image lacks", k.Name, k.Unit)
		}
	}
	if s.Parameters != nil {
		if err := s.Parameters.checkParameters(units); err != nil {
			return bad(KindParameters, "%v", err)
		}
		if list := s.Unsourced(); len(list) > 0 {
			return bad(KindParameters, "the image has %s beside its parameters: leave it out, for it names no source", list[0])
		}
	}
	if err := s.checkModules(units[uint16(wasm.Unit)]); err != nil {
		return err
	}
	for _, v := range s.SelfTest {
		if v.Scratch > MaxVectorMemory || v.Dict > MaxVectorMemory {
			return bad(KindSelfTest, "vector %q asks for more than %d bytes", v.Name, MaxVectorMemory)
		}
		for _, u := range v.Units {
			if u < 0 || u > 0xffff || !units[uint16(u)] {
				return bad(KindSelfTest, "vector %q proves unit %d, which the image lacks", v.Name, u)
			}
		}
	}
	return nil
}
