package httpbody

import (
	"bytes"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// live returns the live bytes of the heap after a collection.
func live() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// repeated is a field n times with the same bytes.
func repeated(number protowire.Number, value []byte, n int) []byte {
	one := protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	return bytes.Repeat(one, n)
}

// TestDecodedIsNoLessThanWhatDecodingTakes, for what multiplies most: a message is far larger in memory than on the
// wire.
func TestDecodedIsNoLessThanWhatDecodingTakes(t *testing.T) {
	const n = 100_000
	nested := protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), repeated(2, nil, 10))
	for name, c := range map[string]struct {
		into proto.Message
		wire []byte
	}{
		"empty messages":           {&descriptorpb.FileDescriptorProto{}, repeated(4, nil, n)},
		"messages within messages": {&descriptorpb.FileDescriptorProto{}, bytes.Repeat(nested, n/10)},
		"empty strings":            {&descriptorpb.FileDescriptorProto{}, repeated(3, nil, n)},
		"strings": {&descriptorpb.FileDescriptorProto{},
			repeated(3, []byte("a name of some length"), n)},
		"packed numbers": {&descriptorpb.SourceCodeInfo_Location{},
			repeated(1, bytes.Repeat([]byte{1}, n), 1)},
		"packed negative numbers": {&descriptorpb.SourceCodeInfo_Location{},
			repeated(1, bytes.Repeat([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, n/10), 1)},
		"numbers one by one": {&descriptorpb.FileDescriptorProto{}, bytes.Repeat([]byte{10 << 3, 1}, n)},
		"entries of a map":   {&structpb.Struct{}, manyEntries(n / 10)},
		"unknown fields":     {&descriptorpb.FileDescriptorProto{}, repeated(1000, nil, n)},
		"one long string":    {&descriptorpb.FileDescriptorProto{}, repeated(1, bytes.Repeat([]byte("x"), n), 1)},
	} {
		t.Run(name, func(t *testing.T) {
			var s sizes
			got, err := s.decoded(c.into.ProtoReflect().Descriptor(), c.wire, 1<<40)
			require.NoError(t, err)
			// the least of some tries: what else the process allocates meanwhile is not the message's
			took := int64(math.MaxInt64)
			for range 3 {
				proto.Reset(c.into)
				before := live()
				require.NoError(t, proto.Unmarshal(c.wire, c.into))
				took = min(took, live()-before)
				runtime.KeepAlive(c.into)
			}
			assert.GreaterOrEqual(t, got+16<<10, took)
			assert.Less(t, got, 20*took+1<<20, "and not far more: honest calls have to pass")
			text, err := protojson.Marshal(c.into)
			if name == "unknown fields" || name == "entries of a map" {
				return // JSON has no such thing: no unknown fields, no value without one
			}
			require.NoError(t, err)
			assert.GreaterOrEqual(t, s.decodedJSON(c.into.ProtoReflect().Descriptor(), text)+16<<10, took)
		})
	}
}

func manyEntries(n int) []byte {
	var b []byte
	for i := range n {
		entry := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType),
			[]byte(strings.Repeat("k", i%20)+string(rune('a'+i%26))+string(rune(i))))
		b = append(b, repeated(1, entry, 1)...)
	}
	return b
}

// TestDecodedEnds: at what it is asked to count to, at what is malformed, and where messages are nested without end.
func TestDecodedEnds(t *testing.T) {
	var s sizes
	file := (&descriptorpb.FileDescriptorProto{}).ProtoReflect().Descriptor()
	n, err := s.decoded(file, repeated(4, nil, 1_000_000), 1<<20)
	require.NoError(t, err)
	assert.Less(t, n, int64(2<<20))
	assert.Greater(t, n, int64(1<<20))
	n, err = s.decoded(file, []byte{0x22, 0xff, 0xff, 0xff, 0xff, 0xff}, 1<<20)
	require.NoError(t, err)
	assert.Less(t, n, int64(1<<12))
	var deep []byte
	for range 2 * maxNesting {
		deep = protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), deep)
	}
	_, err = s.decoded((&descriptorpb.DescriptorProto{}).ProtoReflect().Descriptor(), deep, 1<<30)
	require.ErrorIs(t, err, errNesting)
}

// FuzzDecoded: no panic, and what decodes takes no more than was said.
func FuzzDecoded(f *testing.F) {
	f.Add(repeated(4, nil, 50))
	f.Add(manyEntries(20))
	f.Add([]byte{10 << 3, 1, 0x0b, 0x0c})
	f.Fuzz(func(t *testing.T, b []byte) {
		var s sizes
		m := &descriptorpb.FileDescriptorProto{}
		n, err := s.decoded(m.ProtoReflect().Descriptor(), b, 1<<40)
		if proto.Unmarshal(b, m) != nil {
			return
		}
		if err != nil {
			return // nested more deeply than any message of millrace.proto
		}
		if least := reachable(m); n < least {
			t.Fatalf("said %d bytes, and %d are reachable", n, least)
		}
		if text, err := protojson.Marshal(m); err == nil {
			if n := s.decodedJSON(m.ProtoReflect().Descriptor(), text); n < int64(len(text)) {
				t.Fatalf("JSON of %d bytes is said to take %d", len(text), n)
			}
		}
	})
}

// reachable counts some of what a message points to: its nested messages and the text of its dependencies.
func reachable(m *descriptorpb.FileDescriptorProto) int64 {
	n := int64(len(m.ProtoReflect().GetUnknown()))
	for _, d := range m.Dependency {
		n += int64(len(d)) + 16
	}
	return n + int64(len(m.MessageType)+len(m.EnumType)+len(m.Service)+len(m.Extension))*64
}

// TestBudget: calls, peers and the whole have their limits, and get back what others give back.
func TestBudget(t *testing.T) {
	b := NewBudget(1000)
	rng := rand.New(rand.NewPCG(1, 2))
	holds := map[int]*hold{}
	for i := range 5000 {
		id := rng.IntN(20)
		h := holds[id]
		if h == nil {
			h = &hold{b: b, peer: string(rune('a' + id%3))}
			holds[id] = h
		}
		switch i % 3 {
		case 0, 1:
			_ = h.atLeast(rng.Int64N(300))
		default:
			h.end()
		}
		sum, peers := int64(0), map[string]int64{}
		for _, h := range holds {
			sum += h.n
			peers[h.peer] += h.n
		}
		used, most := b.Used()
		require.Equal(t, sum, used)
		require.LessOrEqual(t, most, int64(1000))
		for _, n := range peers {
			require.LessOrEqual(t, n, int64(500))
		}
	}
	for _, h := range holds {
		h.end()
	}
	used, _ := b.Used()
	assert.Zero(t, used)
	assert.Empty(t, b.peers)
}

// TestBeginWaits until others give back, and not for what no peer may have.
func TestBeginWaits(t *testing.T) {
	b := NewBudget(1000)
	first, second := &hold{b: b, peer: "a"}, &hold{b: b, peer: "b"}
	require.NoError(t, first.begin(t.Context(), 500))
	require.NoError(t, second.begin(t.Context(), 400))
	third := &hold{b: b, peer: "c"}
	done := make(chan error)
	go func() { done <- third.begin(t.Context(), 200) }()
	select {
	case err := <-done:
		t.Fatalf("there were no 200 bytes left: %v", err)
	default:
	}
	first.end()
	require.NoError(t, <-done)
	require.ErrorIs(t, third.begin(t.Context(), 501), ErrMemory, "no waiting helps")
	b.patience = 1
	require.ErrorIs(t, second.begin(t.Context(), 101), ErrMemory)
}
