package apiv1

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfTheWords holds every method, message, field number, type and value of millrace.proto. Lines may be added to
// the golden file and none may change, since a control plane, nodes and launchers of different versions work together.
func TestFormOfTheWords(t *testing.T) {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	file := File_millrace_proto
	for i := range file.Services().Len() {
		service := file.Services().Get(i)
		for j := range service.Methods().Len() {
			m := service.Methods().Get(j)
			add("rpc %s %s -> %s, streams %v %v", m.FullName(), m.Input().FullName(), m.Output().FullName(),
				m.IsStreamingClient(), m.IsStreamingServer())
		}
	}
	enum := func(e protoreflect.EnumDescriptor) {
		for i := range e.Values().Len() {
			add("enum %s %d %s", e.FullName(), e.Values().Get(i).Number(), e.Values().Get(i).Name())
		}
	}
	var message func(protoreflect.MessageDescriptor)
	message = func(m protoreflect.MessageDescriptor) {
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			kind := f.Kind().String()
			if f.Message() != nil {
				kind = string(f.Message().FullName())
			}
			if f.Enum() != nil {
				kind = string(f.Enum().FullName())
			}
			add("field %s %d %s %s %s", m.FullName(), f.Number(), f.Name(), f.Cardinality(), kind)
		}
		for i := range m.Messages().Len() {
			message(m.Messages().Get(i))
		}
		for i := range m.Enums().Len() {
			enum(m.Enums().Get(i))
		}
	}
	for i := range file.Messages().Len() {
		message(file.Messages().Get(i))
	}
	for i := range file.Enums().Len() {
		enum(file.Enums().Get(i))
	}
	sort.Strings(lines)
	goldenfile.Text(t, "testdata/words.v1.txt", strings.Join(lines, "\n")+"\n")
}
