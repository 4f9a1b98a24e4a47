package image

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Role says what a program slot is for.
type Role string

// The roles of a drive's four slots.
const (
	RoleStock Role = "stock" // slot 0: the drive came with its image; cannot be replaced, booted when nothing else can
	RoleField Role = "field" // slots 1 and 2: the image deployed and the one before it
	RoleTrial Role = "trial" // slot 3: an operator's to try images in; rollouts leave it alone
)

// Report is a drive's account of its images: vendor log page C1h.
type Report struct {
	Platform      string       `json:"platform"`
	Interface     uuid.UUID    `json:"interface"` // that the drive has
	Policy        Policy       `json:"policy"`
	Keys          []KeyID      `json:"keys"`
	RevokedKeys   []KeyID      `json:"revoked_keys"`
	RevokedImages []ID         `json:"revoked_images"`
	Slots         []SlotReport `json:"slots"`    // by number
	Refusals      []Refusal    `json:"refusals"` // latest first, at most MaxRefusals
}

// SlotReport describes a program slot.
type SlotReport struct {
	Slot      int       `json:"slot"`
	Role      Role      `json:"role"`
	Image     ID        `json:"image"` // zero: empty
	Interface uuid.UUID `json:"interface"`
	Bytes     int       `json:"bytes"`
	Active    bool      `json:"active"`    // runs now
	Boot      bool      `json:"boot"`      // will be started when the drive is opened again
	Previous  bool      `json:"previous"`  // rollback activates it
	Tested    bool      `json:"tested"`    // passed its self-test since it was loaded or the drive was opened
	SignedBy  KeyID     `json:"signed_by"` // zero: unsigned
	Standing  Standing  `json:"standing"`  // empty: the slot is
	Reason    string    `json:"reason"`    // why the slot is empty though it held an image, or why that one does not run
}

// Refusal records a command about images that the drive refused.
type Refusal struct {
	Number    uint64    `json:"refusal_number"` // 1 for the first since the drive was opened
	Operation string    `json:"operation"`      // load, test, activate, deactivate, unload
	Slot      int       `json:"slot"`
	Step      Step      `json:"step"`
	Image     ID        `json:"image"`
	Want      uuid.UUID `json:"image_interface"`
	Have      uuid.UUID `json:"drive_interface"`
	Detail    string    `json:"detail"`
	Holders   []string  `json:"holders"`
}

// Limits of a Report. A foreign one is held against them before anything is made from it.
const (
	MaxReport   = 1 << 20 // bytes of the page
	MaxRefusals = 8
	maxText     = 1024 // bytes of a reason or a detail
	maxHolders  = 32
	maxSlots    = 256
)

// On the wire a Report is a header, little endian, and JSON:
//
//	0 magic "MIMGLOG1", 8 length of the JSON u32, 12 CRC32C of the JSON u32, 16 generation u64, 24 reserved
//
// The generation changes whenever the content of the page does, so that a host that reads the page in parts notices a
// change between two.
const (
	reportMagic = "MIMGLOG1"
	// ReportHeader is the size of the header in bytes.
	ReportHeader = 32
)

// ErrReport says that bytes are no report, or were taken while it changed.
var ErrReport = errors.New("not a report of images")

// Marshal writes the page. Texts and lists past their limits are cut.
func (r *Report) Marshal(generation uint64) ([]byte, error) {
	c := *r
	c.Keys, c.RevokedKeys, c.RevokedImages = list(r.Keys), list(r.RevokedKeys), list(r.RevokedImages)
	c.Slots = list(r.Slots)
	for i := range c.Slots {
		c.Slots[i].Reason = cut(c.Slots[i].Reason)
	}
	c.Refusals = list(r.Refusals[:min(len(r.Refusals), MaxRefusals)])
	for i := range c.Refusals {
		f := &c.Refusals[i]
		f.Detail = cut(f.Detail)
		f.Holders = list(f.Holders[:min(len(f.Holders), maxHolders)])
	}
	body, err := json.Marshal(&c)
	if err != nil {
		return nil, fmt.Errorf("report of images: %w", err)
	}
	if len(body) > MaxReport-ReportHeader {
		return nil, fmt.Errorf("report of images: %d bytes: %w", len(body), ErrTooLarge)
	}
	b := make([]byte, ReportHeader, ReportHeader+len(body))
	copy(b, reportMagic)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(body)))
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
	binary.LittleEndian.PutUint64(b[16:], generation)
	return append(b, body...), nil
}

// list copies a list, so that none is null in JSON.
func list[T any](from []T) []T { return append(make([]T, 0, len(from)), from...) }

// cut shortens a text to whole characters within the limit.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// ReportSize returns the length of the whole page that a header begins, and its generation. The error wraps ErrReport.
func ReportSize(b []byte) (size int, generation uint64, err error) {
	if len(b) < ReportHeader || string(b[:8]) != reportMagic {
		return 0, 0, fmt.Errorf("%w: it does not begin like one", ErrReport)
	}
	n := binary.LittleEndian.Uint32(b[8:])
	if n > MaxReport-ReportHeader {
		return 0, 0, fmt.Errorf("%w: %d bytes, at most %d", ErrReport, n, MaxReport-ReportHeader)
	}
	return ReportHeader + int(n), binary.LittleEndian.Uint64(b[16:]), nil
}

// ParseReport reads the page from b, which may have more bytes than it. The error wraps ErrReport.
func ParseReport(b []byte) (*Report, error) {
	n, _, err := ReportSize(b)
	if err != nil {
		return nil, err
	}
	if len(b) < n {
		return nil, fmt.Errorf("%w: %d bytes where the header says %d", ErrReport, len(b), n)
	}
	body := b[ReportHeader:n]
	if crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(b[12:]) {
		return nil, fmt.Errorf("%w: the CRC32C differs", ErrReport)
	}
	r := new(Report)
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReport, err)
	}
	if len(r.Slots) > maxSlots || len(r.Keys) > MaxKeys || len(r.RevokedKeys) > MaxRevoked ||
		len(r.RevokedImages) > MaxRevoked || len(r.Refusals) > MaxRefusals {
		return nil, fmt.Errorf("%w: a list is longer than it may be", ErrReport)
	}
	for i := range r.Slots {
		if r.Slots[i].Slot != i {
			return nil, fmt.Errorf("%w: slot %d in place %d", ErrReport, r.Slots[i].Slot, i)
		}
	}
	// A drive of a newer build may leave a list out; no list is null when the report is printed.
	r.Keys, r.RevokedKeys, r.RevokedImages = list(r.Keys), list(r.RevokedKeys), list(r.RevokedImages)
	r.Slots, r.Refusals = list(r.Slots), list(r.Refusals)
	for i := range r.Refusals {
		r.Refusals[i].Holders = list(r.Refusals[i].Holders)
	}
	return r, nil
}

// Active is the slot whose image runs, and whether one does.
func (r *Report) Active() (SlotReport, bool) {
	i := slices.IndexFunc(r.Slots, func(s SlotReport) bool { return s.Active })
	if i < 0 {
		return SlotReport{}, false
	}
	return r.Slots[i], true
}

// Find is the slot that holds an image, the active one before others.
func (r *Report) Find(id ID) (SlotReport, bool) {
	found, ok := SlotReport{}, false
	for _, s := range r.Slots {
		if id != (ID{}) && s.Image == id && (!ok || s.Active) {
			found, ok = s, true
		}
	}
	return found, ok
}

// Free is the slot that the next image is loaded into: the field slot that is neither active nor booted, an empty one
// first. -1: there is none.
func (r *Report) Free() int {
	free := -1
	for _, s := range r.Slots {
		if s.Role != RoleField || s.Active || s.Boot {
			continue
		}
		if s.Image == (ID{}) {
			return s.Slot
		}
		if free < 0 || r.Slots[free].Previous {
			free = s.Slot
		}
	}
	return free
}

// Rollback is the slot that a rollback activates: the image that ran before the active one if it is there still, else
// the stock image. There is none when the stock image runs and nothing ran before it.
func (r *Report) Rollback() (SlotReport, bool) {
	for _, s := range r.Slots {
		if s.Previous && !s.Active && s.Image != (ID{}) {
			return s, true
		}
	}
	for _, s := range r.Slots {
		if s.Role == RoleStock && !s.Active {
			return s, true
		}
	}
	return SlotReport{}, false
}

// NoteRefusal makes a Refusal from an error. An error that is no LoadError gets the step commit.
func NoteRefusal(operation string, slot int, err error) Refusal {
	f := Refusal{Operation: operation, Slot: slot, Step: StepCommit, Detail: err.Error()}
	var e *LoadError
	if errors.As(err, &e) {
		f.Step, f.Image, f.Want, f.Have, f.Detail = e.Step, e.Image, e.Want, e.Have, e.Err.Error()
	}
	var busy *BusyError
	if errors.As(err, &busy) {
		f.Holders = busy.Holders
	}
	return f
}

// refused is the cause that a drive reported.
type refused struct{ text string }

func (r refused) Error() string { return r.text }

// Err returns the error with which the drive refused, as far as the report has it.
func (f *Refusal) Err() error {
	e := &LoadError{Step: f.Step, Slot: f.Slot, Image: f.Image, Want: f.Want, Have: f.Have, Err: refused{f.Detail}}
	if f.Step == StepInUse {
		e.Err = &BusyError{Holders: f.Holders}
		if len(f.Holders) == 0 {
			e.Err = refused{f.Detail}
		}
	}
	return e
}
