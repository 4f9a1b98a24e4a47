package private

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
)

// Version is the version of the protocol. Both sides must speak the same version, since one package contains both
// sides.
const Version = 1

// MaxMessage bounds a message: the largest holds the manifest of a job of a million files.
const MaxMessage = 256 << 20

// ErrProtocol says that bytes are not a message of this protocol, or that a message is not allowed in the session's
// state.
var ErrProtocol = errors.New("private process: protocol")

// Message is one of the types below.
type Message interface{ kind() string }

// Free returns a buffer to the process.
type Free struct {
	Buffer int `json:"buffer"`
}

// Seek attaches the rank again, at a position, and gives the attachment its number. Mini-batches of earlier
// generations may still be under way.
type Seek struct {
	Generation int    `json:"generation"`
	Token      string `json:"token"` // "" is the beginning
	// Stamps are Opened.Stamps from when the position was kept.
	Stamps map[string]api.Stamp `json:"stamps,omitempty"`
}

// Leave announces that the rank needs no more mini-batches.
type Leave struct{}

// Opened answers Open.
type Opened struct {
	Version     int                `json:"version"`
	Digest      string             `json:"digest"`
	Schema      json.RawMessage    `json:"schema"`   // Schema has the form of sdk/tensor.
	Manifest    json.RawMessage    `json:"manifest"` // Manifest has the form of sdk/dataset.
	MeanLength  map[string]float64 `json:"mean_length,omitempty"`
	Batch       int                `json:"batch"`
	Epochs      uint64             `json:"epochs"`
	Order       string             `json:"order"`
	MiniBatches uint64             `json:"minibatches"` // MiniBatches is how many every epoch has, all ranks together.
	From        uint64             `json:"from"`        // the rank owns numbers [From, To) of every epoch
	To          uint64             `json:"to"`
	LeftOutRows int64              `json:"left_out_rows,omitempty"` // rows of the token's epoch that no rank gets
	// ShortMiniBatches is how many of MiniBatches have fewer rows than Batch.
	ShortMiniBatches uint64 `json:"short_minibatches,omitempty"`
	Token            string `json:"token"` // the position from which the rank goes on
	Threads          int    `json:"threads"`
	PID              int    `json:"pid"`
	// Stamps are the stamps of the partitions' files, by partition. A trainer keeps them with a position.
	Stamps map[string]api.Stamp `json:"stamps,omitempty"`
}

// Buffer passes a buffer's descriptor.
type Buffer struct {
	Buffer int   `json:"buffer"`
	Bytes  int64 `json:"bytes"`
	Limit  int64 `json:"limit"` // bytes that the trainer may keep, or two buffers
}

// Retired announces that the process will not use a buffer again that the trainer returned.
type Retired struct {
	Buffer int `json:"buffer"`
}

// MiniBatch announces that a buffer holds a frame, from the buffer's first byte on.
type MiniBatch struct {
	Generation  int    `json:"generation"`
	Buffer      int    `json:"buffer"`
	Bytes       int64  `json:"bytes"` // Bytes is the length of the whole frame.
	Epoch       uint64 `json:"epoch"`
	Number      uint64 `json:"number"`
	LeftOutRows int64  `json:"left_out_rows,omitempty"` // rows of the epoch that no rank gets
}

// Sought answers Seek.
type Sought struct {
	Generation int    `json:"generation"`
	Token      string `json:"token"`
}

// Failed describes the error that ended a rank's session, or for which an Open or a Seek was refused.
type Failed struct {
	Code    string `json:"code"`
	Message string `json:"message"`

	File     string    `json:"file,omitempty"`
	Column   string    `json:"column,omitempty"`
	RowGroup *int      `json:"row_group,omitempty"`
	Page     *int64    `json:"page,omitempty"`
	Row      *int64    `json:"row,omitempty"`
	Line     int64     `json:"line,omitempty"`
	Problems []Problem `json:"problems,omitempty"` // Problems are those of a pipeline.

	Generation int `json:"generation,omitempty"` // The Seek of this generation was refused; the session goes on.
}

// Problem is one error of a pipeline.
type Problem struct {
	Line    int    `json:"line,omitempty"`
	At      int    `json:"at,omitempty"` // the character of the line
	Path    string `json:"path,omitempty"`
	Column  string `json:"column,omitempty"`
	Message string `json:"message"`
}

func (*Open) kind() string      { return "open" }
func (*Free) kind() string      { return "free" }
func (*Seek) kind() string      { return "seek" }
func (*Leave) kind() string     { return "leave" }
func (*Opened) kind() string    { return "opened" }
func (*Buffer) kind() string    { return "buffer" }
func (*Retired) kind() string   { return "retired" }
func (*MiniBatch) kind() string { return "minibatch" }
func (*Sought) kind() string    { return "sought" }
func (*Failed) kind() string    { return "failed" }

// newMessage returns an empty message of a kind, or nil if no message is of that kind.
func newMessage(kind string) Message {
	for _, m := range []Message{&Open{}, &Free{}, &Seek{}, &Leave{}, &Opened{}, &Buffer{}, &Retired{}, &MiniBatch{},
		&Sought{}, &Failed{}} {
		if m.kind() == kind {
			return m
		}
	}
	return nil
}

// Encode returns a message with its length before it.
func Encode(m Message) ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.kind(), err)
	}
	// Every message is an object, so that its kind can be put before its first member.
	kind := `{"kind":"` + m.kind() + `"`
	if len(body) > len("{}") {
		kind += ","
	}
	n := len(kind) + len(body) - 1
	if n > MaxMessage {
		return nil, fmt.Errorf("encode %s: %d bytes, at most %d", m.kind(), n, MaxMessage)
	}
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+n), uint32(n))
	b = append(b, kind...)
	return append(b, body[1:]...), nil
}

// Read reads the next message. It returns io.EOF at the end of the connection, between two messages. Memory grows
// with the bytes that arrive, not with the length that the message claims.
func Read(r io.Reader) (Message, error) {
	var length [4]byte
	if n, err := io.ReadFull(r, length[:]); err != nil {
		if n == 0 && errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, fmt.Errorf("%w: the connection ended inside a length: %w", ErrProtocol, err)
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > MaxMessage {
		return nil, fmt.Errorf("%w: a message of %d bytes, at most %d", ErrProtocol, n, MaxMessage)
	}
	body, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return nil, fmt.Errorf("%w: read a message: %w", ErrProtocol, err)
	}
	if len(body) < int(n) {
		return nil, fmt.Errorf("%w: the connection ended after %d of %d bytes of a message", ErrProtocol, len(body), n)
	}
	return decodeMessage(body)
}

// decodeMessage reads a message without its length.
func decodeMessage(body []byte) (Message, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	m := newMessage(head.Kind)
	if m == nil {
		return nil, fmt.Errorf("%w: a message of kind %.40q, which version %d does not know", ErrProtocol, head.Kind,
			Version)
	}
	if err := json.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrProtocol, head.Kind, err)
	}
	return m, nil
}

// parseToken reads the position that a trainer asks for; nil is the beginning.
func parseToken(text string) (*dataset.Token, error) {
	if text == "" {
		return nil, nil
	}
	t := new(dataset.Token)
	if err := t.UnmarshalText([]byte(text)); err != nil {
		return nil, err
	}
	return t, nil
}
