package image

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shellInterface is the interface of a shell.
var shellInterface = uuid.NewSHA1(uuid.NameSpaceOID, []byte("millrace csd shell interface 1"))

func sampleLogPage() *LogPage {
	return &LogPage{
		Platform: "test-board", Interface: shellInterface, Policy: PolicyRequire, Keys: []KeyID{{1}},
		RevokedKeys: []KeyID{{2}}, RevokedImages: []ID{{3}},
		Slots: []Slot{
			{Slot: 0, Role: RoleStock, Image: ID{4}, Standing: StandingStock},
			{Slot: 1, Role: RoleField, Image: ID{5}, Active: true, Boot: true, Tested: true, Standing: StandingTrusted},
			{Slot: 2, Role: RoleField, Image: ID{6}, Previous: true, Standing: StandingTrusted},
			{Slot: 3, Role: RoleTrial, Reason: "damaged"},
		},
		Refusals: []Refusal{{Number: 2, Operation: "load", Slot: 1, Step: StepInterface, Image: ID{7},
			Want: sample().Interface, Have: shellInterface, Detail: "no", Holders: []string{"h"}}},
	}
}

// sampleOfRegions is the page of a drive of three regions, of which one executes nothing.
func sampleOfRegions() *LogPage {
	r := sampleLogPage()
	r.Regions = []Region{
		{Region: 0, Slot: 1, Boot: 1, Previous: 2, Threads: 2, SLMBytes: 1 << 20},
		{Region: 1, Slot: NoSlot, Boot: 0, Previous: NoSlot, Threads: 2, SLMAddress: 1 << 20, SLMBytes: 1 << 20},
		{Region: 2, Slot: 3, Boot: 3, Previous: 3, Threads: 2, SLMAddress: 2 << 20, SLMBytes: 1 << 20},
	}
	return r
}

func TestRegionsOfALogPage(t *testing.T) {
	r := sampleOfRegions()
	for region, want := range []int{1, NoSlot, 3} {
		at, ok := r.In(region).Active()
		assert.Equal(t, want != NoSlot, ok)
		assert.Equal(t, max(want, 0), at.Slot)
	}
	_, ok := r.In(3).Active()
	assert.False(t, ok, "there is no such region")
	for region, want := range []int{2, 0, 0} {
		to, ok := r.In(region).Rollback()
		assert.True(t, ok)
		assert.Equal(t, want, to.Slot, "region %d", region)
	}
	_, ok = r.In(3).Rollback()
	assert.False(t, ok)
	r.Regions[0] = Region{Slot: 0, Previous: NoSlot}
	_, ok = r.Rollback()
	assert.False(t, ok, "the stock image runs and nothing ran before it")
	at, ok := r.Active()
	assert.True(t, ok)
	assert.Equal(t, 0, at.Slot, "of region 0")

	for name, change := range map[string]func(*LogPage){
		"eight regions":         func(r *LogPage) { r.Regions = make([]Region, maxRegions+1) },
		"out of place":          func(r *LogPage) { r.Regions[1].Region = 2 },
		"slot past the last":    func(r *LogPage) { r.Regions[0].Slot = 4 },
		"slot below none":       func(r *LogPage) { r.Regions[0].Slot = -2 },
		"boots a slot past it":  func(r *LogPage) { r.Regions[0].Boot = 4 },
		"boots none":            func(r *LogPage) { r.Regions[0].Boot = NoSlot },
		"before it, past it":    func(r *LogPage) { r.Regions[0].Previous = 4 },
		"before it, below none": func(r *LogPage) { r.Regions[0].Previous = -2 },
		"regions, and no slot":  func(r *LogPage) { r.Slots = nil },
	} {
		r := sampleOfRegions()
		change(r)
		b, err := r.Marshal(1)
		require.NoError(t, err)
		_, err = ParseLogPage(b)
		require.ErrorIs(t, err, ErrLogPage, name)
	}
}

func TestLogPageOnTheWire(t *testing.T) {
	r := sampleLogPage()
	b, err := r.Marshal(77)
	require.NoError(t, err)
	n, changes, err := LogPageSize(b[:LogPageHeader])
	require.NoError(t, err)
	assert.Equal(t, len(b), n)
	assert.EqualValues(t, 77, changes)
	got, err := ParseLogPage(append(b, 0, 0, 0))
	require.NoError(t, err, "a host may read more than there is")
	assert.Equal(t, r, got)
	for i := range b[:LogPageHeader-8] { // the last 8 are reserved
		if i >= 16 && i < 24 {
			continue // the count of changes says nothing of the content
		}
		c := append([]byte(nil), b...)
		c[i] ^= 0x80
		_, err := ParseLogPage(c)
		require.ErrorIs(t, err, ErrLogPage, "byte %d", i)
	}
	for i := LogPageHeader; i < len(b); i++ {
		c := append([]byte(nil), b...)
		c[i] ^= 1
		_, err := ParseLogPage(c)
		require.ErrorIs(t, err, ErrLogPage, "byte %d", i)
		_, err = ParseLogPage(b[:i])
		require.ErrorIs(t, err, ErrLogPage, "%d bytes", i)
	}
	binary.LittleEndian.PutUint32(b[8:], MaxLogPage)
	_, _, err = LogPageSize(b)
	require.ErrorIs(t, err, ErrLogPage)
}

func TestLogPageIsBounded(t *testing.T) {
	r := sampleLogPage()
	r.Slots[3].Reason = strings.Repeat("ü", maxText)
	r.Refusals[0].Holders = make([]string, 100)
	r.Refusals = append(r.Refusals, make([]Refusal, 50)...)
	r.RevokedKeys, r.RevokedImages, r.Keys = make([]KeyID, MaxRevoked), make([]ID, MaxRevoked), make([]KeyID, MaxKeys)
	b, err := r.Marshal(1)
	require.NoError(t, err)
	assert.Less(t, len(b), MaxLogPage)
	got, err := ParseLogPage(b)
	require.NoError(t, err)
	assert.Len(t, got.Refusals, MaxRefusals)
	assert.Len(t, got.Refusals[0].Holders, maxHolders)
	assert.Equal(t, strings.Repeat("ü", maxText/2), got.Slots[3].Reason, "whole characters")
	assert.Len(t, r.Slots[3].Reason, 2*maxText, "the page itself is left alone")
	wrong := sampleLogPage()
	wrong.Slots[1].Slot = 2
	b, err = wrong.Marshal(1)
	require.NoError(t, err)
	_, err = ParseLogPage(b)
	require.ErrorIs(t, err, ErrLogPage)
}

func TestWhereTheNextImageGoes(t *testing.T) {
	r := sampleLogPage()
	assert.Equal(t, 2, r.Free())
	to, ok := r.Rollback()
	require.True(t, ok)
	assert.Equal(t, 2, to.Slot)
	at, ok := r.Find(ID{5})
	require.True(t, ok)
	assert.Equal(t, 1, at.Slot)
	_, ok = r.Find(ID{})
	assert.False(t, ok, "no slot holds no image")

	r.Slots[2].Image, r.Slots[2].Previous = ID{}, false
	to, ok = r.Rollback()
	require.True(t, ok)
	assert.Equal(t, 0, to.Slot, "the stock image is always there")

	r.Slots[1].Active, r.Slots[0].Active = false, true
	assert.Equal(t, 2, r.Free(), "slot 1 is what the drive would start with")
	_, ok = r.Rollback()
	assert.False(t, ok)
	r.Slots[1].Boot = false
	r.Slots[2].Image = ID{8}
	r.Slots[1].Previous = true
	assert.Equal(t, 2, r.Free(), "not over the one that rollback needs")
	r.Slots[1].Previous = false
	assert.Equal(t, 1, r.Free())
	assert.Equal(t, -1, (&LogPage{}).Free())
	_, ok = (&LogPage{}).Active()
	assert.False(t, ok)
}

func TestRefusalsBecomeErrorsAgain(t *testing.T) {
	busy := &LoadError{Step: StepInUse, Slot: 1, Image: ID{1}, Want: sample().Interface, Have: shellInterface,
		Err: &BusyError{Holders: []string{"a", "b"}}}
	f := NoteRefusal("activate", 1, busy)
	assert.Equal(t, busy.Error(), f.Err().Error())
	var b *BusyError
	require.ErrorAs(t, f.Err(), &b)
	assert.Equal(t, []string{"a", "b"}, b.Holders)

	kept := &LoadError{Step: StepInUse, Err: &BusyError{What: "slot 1"}}
	f = NoteRefusal("load", 1, kept)
	require.ErrorIs(t, f.Err(), ErrInUse)
	assert.Contains(t, f.Err().Error(), "slot 1 is in use: drain it first")

	f = NoteRefusal("test", 3, errors.New("slot 3 is empty"))
	assert.Contains(t, f.Err().Error(), "slot 3 is empty")
}

func FuzzLogPage(f *testing.F) {
	b, err := sampleLogPage().Marshal(3)
	require.NoError(f, err)
	f.Add(b)
	b, err = new(LogPage).Marshal(0)
	require.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= LogPageHeader { // as somebody hostile would
			binary.LittleEndian.PutUint32(b[8:], uint32(len(b)-LogPageHeader))
			binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[LogPageHeader:], crc32.MakeTable(crc32.Castagnoli)))
		}
		r, err := ParseLogPage(b)
		if err != nil {
			require.ErrorIs(t, err, ErrLogPage)
			return
		}
		r.Free()
		r.Rollback()
		for i := range r.Refusals {
			require.Error(t, r.Refusals[i].Err())
		}
		again, err := r.Marshal(1)
		if errors.Is(err, ErrTooLarge) {
			return // characters that JSON spells out
		}
		require.NoError(t, err)
		_, err = ParseLogPage(again)
		require.NoError(t, err)
	})
}
