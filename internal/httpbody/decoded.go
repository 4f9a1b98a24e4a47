package httpbody

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Costs of the parts of a decoded message, in bytes. They are rather too large than too small: a slice that is
// appended to grows in steps, and leaves its earlier arrays to the garbage collector.
const (
	costPointer  = 24  // of an element in a list of messages
	costString   = 48  // of an element in a list of strings
	costBytes    = 72  // of an element in a list of bytes
	costText     = 16  // of the memory behind a string or bytes, beside its length
	costScalar   = 24  // of an element in a list of numbers that is not packed
	costNumber   = 8   // of an element in a packed list
	costEntry    = 128 // of an entry of a map, beside its key and value
	costOptional = 16  // of a number that may be absent
	costUnknown  = 3   // times the length of a field that the message does not have
	costUnnamed  = 512 // of a message whose Go type is not known
	maxNesting   = 100
)

var errNesting = errors.New("its messages are nested too deeply")

// sizes knows how large messages are in memory. It is safe for concurrent use.
type sizes struct{ known sync.Map } // of protoreflect.FullName: int64

// of returns the bytes of a message without the values that its fields point to.
func (s *sizes) of(d protoreflect.MessageDescriptor) int64 {
	if n, ok := s.known.Load(d.FullName()); ok {
		return n.(int64)
	}
	n := int64(costUnnamed)
	if t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName()); err == nil {
		if p := reflect.TypeOf(t.Zero().Interface()); p.Kind() == reflect.Pointer {
			n = int64(p.Elem().Size())
		}
	}
	n += n / 4 // memory is given in sizes of which each is up to an eighth larger than asked for
	s.known.Store(d.FullName(), n)
	return n
}

// decoded returns at least as many bytes as the decoded form of a message takes, and stops counting at most. From the
// first malformed byte on a message costs nothing, because decoding ends there too.
func (s *sizes) decoded(d protoreflect.MessageDescriptor, b []byte, most int64) (int64, error) {
	return s.message(d, b, most, 0)
}

func (s *sizes) message(d protoreflect.MessageDescriptor, b []byte, most int64, depth int) (int64, error) {
	if depth > maxNesting {
		return 0, errNesting
	}
	cost := s.of(d)
	for len(b) > 0 && cost <= most {
		number, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return cost, nil
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, wire, b); n < 0 {
			return cost, nil
		}
		value := b[:n]
		b = b[n:]
		f := d.Fields().ByNumber(number)
		if f == nil {
			cost += costUnknown * int64(n+8)
			continue
		}
		c, err := s.field(f, wire, value, most-cost, depth)
		if err != nil {
			return 0, err
		}
		cost += c
	}
	return cost, nil
}

// field returns what one occurrence of a field costs beside the message that it is in.
func (s *sizes) field(f protoreflect.FieldDescriptor, wire protowire.Type, value []byte, most int64,
	depth int) (int64, error) {
	if wire != protowire.BytesType {
		if f.IsList() {
			return costScalar, nil
		}
		return costOptional + costUnknown*int64(len(value)), nil // of a group: unknown
	}
	text, _ := protowire.ConsumeBytes(value)
	length := int64(len(text))
	switch {
	case f.IsMap():
		cost := costEntry + length
		if v := f.MapValue(); v.Message() != nil {
			c, err := s.message(v.Message(), text, most, depth+1)
			return cost + c, err
		}
		return cost, nil
	case f.Kind() == protoreflect.MessageKind:
		c, err := s.message(f.Message(), text, most, depth+1)
		if f.IsList() {
			c += costPointer
		}
		return c, err
	case f.Kind() == protoreflect.StringKind && f.IsList():
		return costString + costText + length, nil
	case f.Kind() == protoreflect.BytesKind && f.IsList():
		return costBytes + costText + length, nil
	case f.Kind() == protoreflect.StringKind, f.Kind() == protoreflect.BytesKind:
		return costText + length, nil
	case f.IsList(): // packed
		elements := length / 4 // of the shortest fixed numbers
		varints := int64(0)
		for _, c := range text {
			if c < 0x80 { // the last byte of one
				varints++
			}
		}
		return costScalar + max(elements, varints)*costNumber, nil
	}
	return costUnknown * (length + 8), nil
}

// largest returns the size of the largest message that can be inside one.
func (s *sizes) largest(d protoreflect.MessageDescriptor) int64 {
	seen := map[protoreflect.FullName]bool{}
	var visit func(protoreflect.MessageDescriptor) int64
	visit = func(d protoreflect.MessageDescriptor) int64 {
		if seen[d.FullName()] {
			return 0
		}
		seen[d.FullName()] = true
		n := s.of(d)
		for i := range d.Fields().Len() {
			if m := d.Fields().Get(i).Message(); m != nil {
				n = max(n, visit(m))
			}
		}
		return n
	}
	return visit(d)
}

// decodedJSON is decoded for JSON, which is counted and not parsed: each brace is taken for the largest message that
// there can be.
func (s *sizes) decodedJSON(d protoreflect.MessageDescriptor, b []byte) int64 {
	objects := int64(bytes.Count(b, []byte("{")))
	values := int64(bytes.Count(b, []byte(",")) + bytes.Count(b, []byte("[")) + bytes.Count(b, []byte(":")))
	cost := objects*(s.largest(d)+costPointer) + values*costBytes + 2*int64(len(b))
	return min(cost, math.MaxInt64/4)
}
