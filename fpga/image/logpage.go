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

	"github.com/millrace/millrace/fpga/program"
)

// Role says what a program slot is for.
type Role string

// The roles of a drive's four slots.
const (
	RoleStock Role = "stock" // slot 0: the drive came with its image; cannot be replaced, booted when nothing else can
	RoleField Role = "field" // slots 1 and 2: the image deployed and the one before it
	RoleTrial Role = "trial" // slot 3: an operator's to try images in; rollouts leave it alone
)

// LogPage is a drive's account of its images: vendor log page C1h.
type LogPage struct {
	Platform      string    `json:"platform"`
	Interface     uuid.UUID `json:"interface"` // The drive has this interface.
	Policy        Policy    `json:"policy"`
	Keys          []KeyID   `json:"keys"`
	RevokedKeys   []KeyID   `json:"revoked_keys"`
	RevokedImages []ID      `json:"revoked_images"`
	Slots         []Slot    `json:"slots"`             // by number
	Regions       []Region  `json:"regions,omitempty"` // by number; drives of builds that know none leave them out
	Refusals      []Refusal `json:"refusals"`          // latest first, at most MaxRefusals

	region int // whose images Active and Rollback return
}

// In returns the page as a host of a region sees it: Active and Rollback return the region's images. Without In they
// return those of region 0.
func (r *LogPage) In(region int) *LogPage {
	c := *r
	c.region = region
	return &c
}

// Slot describes a program slot.
type Slot struct {
	Slot      int       `json:"slot"`
	Role      Role      `json:"role"`
	Image     ID        `json:"image"` // zero: empty
	Interface uuid.UUID `json:"interface"`
	Bytes     int       `json:"bytes"`
	Active    bool      `json:"active"`    // runs now, in a region
	Boot      bool      `json:"boot"`      // will be started, in a region, when the drive is opened again
	Previous  bool      `json:"previous"`  // rollback of a region activates it
	Tested    bool      `json:"tested"`    // passed its self-test since it was loaded or the drive was opened
	SignedBy  KeyID     `json:"signed_by"` // zero: unsigned
	Standing  Standing  `json:"standing"`  // empty: the slot is
	Reason    string    `json:"reason"`    // why the slot is empty though it held an image, or why its image does not run
	// Modules are the WebAssembly modules of the image. Drives of builds that know none leave them out.
	Modules []SlotModule `json:"modules,omitempty"`
	// Lookups says that the image has the unit vocabulary.
	Lookups bool `json:"lookups,omitempty"`
}

// NoSlot is the slot of a region without an image.
const NoSlot = -1

// Region describes a region of a drive: what it executes, and its share.
type Region struct {
	Region     int    `json:"region"`
	Slot       int    `json:"slot"`          // whose image it executes, or NoSlot
	Boot       int    `json:"boot_slot"`     // with whose image it starts when the drive is opened again
	Previous   int    `json:"previous_slot"` // whose image a rollback activates, or NoSlot
	Threads    int    `json:"engine_threads"`
	SLMAddress uint64 `json:"slm_first_byte"` // The region's share of local memory begins there.
	SLMBytes   uint64 `json:"slm_bytes"`
}

// SlotModule is a module of an image in a slot.
type SlotModule struct {
	Name   string               `json:"name"`
	SHA256 program.ModuleDigest `json:"sha256"` // by which programs name it
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

// Limits of a LogPage. ParseLogPage holds a foreign page against them before it makes anything from the page.
const (
	MaxLogPage  = 1 << 20 // bytes of the page
	MaxRefusals = 8
	maxText     = 1024 // bytes of a reason or a detail
	maxHolders  = 32
	maxSlots    = 256
	maxRegions  = 7
)

// On the wire a LogPage is a header, little endian, and JSON:
//
//	0 magic "MIMGLOG1", 8 length of the JSON u32, 12 CRC32C of the JSON u32, 16 count of changes u64, 24 reserved
//
// The count of changes grows whenever the content of the page changes, so that a host that reads the page in parts
// notices a change between two.
const (
	logPageMagic = "MIMGLOG1"
	// LogPageHeader is the size of the header in bytes.
	LogPageHeader = 32
)

// ErrLogPage says that bytes are not a log page of images, or were read while the page changed.
var ErrLogPage = errors.New("not a log page of images")

// Marshal writes the page. Texts and lists past their limits are cut.
func (r *LogPage) Marshal(changes uint64) ([]byte, error) {
	c := *r
	c.Keys, c.RevokedKeys, c.RevokedImages = nonNilCopy(r.Keys), nonNilCopy(r.RevokedKeys), nonNilCopy(r.RevokedImages)
	c.Slots = nonNilCopy(r.Slots)
	for i := range c.Slots {
		c.Slots[i].Reason = cutReason(c.Slots[i].Reason)
	}
	c.Refusals = nonNilCopy(r.Refusals[:min(len(r.Refusals), MaxRefusals)])
	for i := range c.Refusals {
		f := &c.Refusals[i]
		f.Detail = cutReason(f.Detail)
		f.Holders = nonNilCopy(f.Holders[:min(len(f.Holders), maxHolders)])
	}
	body, err := json.Marshal(&c)
	if err != nil {
		return nil, fmt.Errorf("log page of images: %w", err)
	}
	if len(body) > MaxLogPage-LogPageHeader {
		return nil, fmt.Errorf("log page of images: %d bytes: %w", len(body), ErrTooLarge)
	}
	b := make([]byte, LogPageHeader, LogPageHeader+len(body))
	copy(b, logPageMagic)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(body)))
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
	binary.LittleEndian.PutUint64(b[16:], changes)
	return append(b, body...), nil
}

// nonNilCopy copies a list, so that none is null in JSON.
func nonNilCopy[T any](from []T) []T { return append(make([]T, 0, len(from)), from...) }

// cutReason shortens a text to whole characters within the limit.
func cutReason(s string) string {
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// LogPageSize returns the length of the whole page that a header begins, and its count of changes. The error wraps
// ErrLogPage.
func LogPageSize(b []byte) (size int, changes uint64, err error) {
	if len(b) < LogPageHeader || string(b[:8]) != logPageMagic {
		return 0, 0, fmt.Errorf("%w: it does not begin like one", ErrLogPage)
	}
	n := binary.LittleEndian.Uint32(b[8:])
	if n > MaxLogPage-LogPageHeader {
		return 0, 0, fmt.Errorf("%w: %d bytes, at most %d", ErrLogPage, n, MaxLogPage-LogPageHeader)
	}
	return LogPageHeader + int(n), binary.LittleEndian.Uint64(b[16:]), nil
}

// ParseLogPage reads the page from b, which may have more bytes than it. The error wraps ErrLogPage.
func ParseLogPage(b []byte) (*LogPage, error) {
	n, _, err := LogPageSize(b)
	if err != nil {
		return nil, err
	}
	if len(b) < n {
		return nil, fmt.Errorf("%w: %d bytes where the header says %d", ErrLogPage, len(b), n)
	}
	body := b[LogPageHeader:n]
	if crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(b[12:]) {
		return nil, fmt.Errorf("%w: the CRC32C differs", ErrLogPage)
	}
	r := new(LogPage)
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLogPage, err)
	}
	if len(r.Slots) > maxSlots || len(r.Keys) > MaxKeys || len(r.RevokedKeys) > MaxRevoked ||
		len(r.RevokedImages) > MaxRevoked || len(r.Refusals) > MaxRefusals || len(r.Regions) > maxRegions {
		return nil, fmt.Errorf("%w: a list is longer than it may be", ErrLogPage)
	}
	for i, g := range r.Regions {
		slots := len(r.Slots)
		if g.Region != i || g.Slot < NoSlot || g.Slot >= slots || g.Boot < 0 || g.Boot >= slots || g.Previous < NoSlot ||
			g.Previous >= slots {
			return nil, fmt.Errorf("%w: region %d names a slot that is not there, or is in place %d", ErrLogPage, g.Region, i)
		}
	}
	for i := range r.Slots {
		if len(r.Slots[i].Modules) > MaxModules {
			return nil, fmt.Errorf("%w: slot %d has %d modules, at most %d", ErrLogPage, i, len(r.Slots[i].Modules),
				MaxModules)
		}
		if r.Slots[i].Slot != i {
			return nil, fmt.Errorf("%w: slot %d in place %d", ErrLogPage, r.Slots[i].Slot, i)
		}
	}
	// A drive of a newer build may leave a list out; no list is null when the page is printed.
	r.Keys, r.RevokedKeys, r.RevokedImages = nonNilCopy(r.Keys), nonNilCopy(r.RevokedKeys), nonNilCopy(r.RevokedImages)
	r.Slots, r.Refusals = nonNilCopy(r.Slots), nonNilCopy(r.Refusals)
	for i := range r.Refusals {
		r.Refusals[i].Holders = nonNilCopy(r.Refusals[i].Holders)
	}
	return r, nil
}

// Active is the slot whose image runs in the region, and whether one does.
func (r *LogPage) Active() (Slot, bool) {
	i := NoSlot
	switch {
	case r.region < len(r.Regions):
		i = r.Regions[r.region].Slot
	case r.region == 0: // of a build that knows no regions
		i = slices.IndexFunc(r.Slots, func(s Slot) bool { return s.Active })
	}
	if i < 0 {
		return Slot{}, false
	}
	return r.Slots[i], true
}

// HasModule reports whether the image in the slot holds a module.
func (s *Slot) HasModule(d program.ModuleDigest) bool {
	return slices.ContainsFunc(s.Modules, func(m SlotModule) bool { return m.SHA256 == d })
}

// Find is the slot that holds an image, the active one before others.
func (r *LogPage) Find(id ID) (Slot, bool) {
	found, ok := Slot{}, false
	for _, s := range r.Slots {
		if id != (ID{}) && s.Image == id && (!ok || s.Active) {
			found, ok = s, true
		}
	}
	return found, ok
}

// Free is the slot that the next image is loaded into: the field slot that is neither active nor booted, an empty one
// first. -1: there is none.
func (r *LogPage) Free() int {
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

// Rollback is the slot that a rollback of the region activates: the image that ran there before the active one if it is
// on the drive still, else the stock image. There is none when the stock image runs and nothing ran before it.
func (r *LogPage) Rollback() (Slot, bool) {
	switch {
	case r.region < len(r.Regions):
		return r.rollbackOf(&r.Regions[r.region])
	case r.region > 0:
		return Slot{}, false
	}
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
	return Slot{}, false
}

func (r *LogPage) rollbackOf(g *Region) (Slot, bool) {
	if g.Previous != NoSlot && g.Previous != g.Slot {
		return r.Slots[g.Previous], true
	}
	if g.Slot != 0 {
		return r.Slots[0], true
	}
	return Slot{}, false
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

// Err returns the error with which the drive refused, as far as the log page has it.
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
