package image

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func sampleReport() *Report {
	return &Report{
		Platform: "test-board", Interface: StockInterface(), Policy: PolicyRequire, Keys: []KeyID{{1}},
		RevokedKeys: []KeyID{{2}}, RevokedImages: []ID{{3}},
		Slots: []SlotReport{
			{Slot: 0, Role: RoleStock, Image: ID{4}, Standing: StandingStock},
			{Slot: 1, Role: RoleField, Image: ID{5}, Active: true, Boot: true, Tested: true, Standing: StandingTrusted},
			{Slot: 2, Role: RoleField, Image: ID{6}, Previous: true, Standing: StandingTrusted},
			{Slot: 3, Role: RoleTrial, Reason: "damaged"},
		},
		Refusals: []Refusal{{Number: 2, Operation: "load", Slot: 1, Step: StepInterface, Image: ID{7},
			Want: sample().Interface, Have: StockInterface(), Detail: "no", Holders: []string{"h"}}},
	}
}

func TestReportOnTheWire(t *testing.T) {
	r := sampleReport()
	b, err := r.Marshal(77)
	require.NoError(t, err)
	n, generation, err := ReportSize(b[:ReportHeader])
	require.NoError(t, err)
	assert.Equal(t, len(b), n)
	assert.EqualValues(t, 77, generation)
	got, err := ParseReport(append(b, 0, 0, 0))
	require.NoError(t, err, "a host may read more than there is")
	assert.Equal(t, r, got)
	for i := range b[:ReportHeader-8] { // the last 8 are reserved
		if i >= 16 && i < 24 {
			continue // the generation says nothing of the content
		}
		c := append([]byte(nil), b...)
		c[i] ^= 0x80
		_, err := ParseReport(c)
		require.ErrorIs(t, err, ErrReport, "byte %d", i)
	}
	for i := ReportHeader; i < len(b); i++ {
		c := append([]byte(nil), b...)
		c[i] ^= 1
		_, err := ParseReport(c)
		require.ErrorIs(t, err, ErrReport, "byte %d", i)
		_, err = ParseReport(b[:i])
		require.ErrorIs(t, err, ErrReport, "%d bytes", i)
	}
	binary.LittleEndian.PutUint32(b[8:], MaxReport)
	_, _, err = ReportSize(b)
	require.ErrorIs(t, err, ErrReport)
}

func TestReportIsBounded(t *testing.T) {
	r := sampleReport()
	r.Slots[3].Reason = strings.Repeat("ü", maxText)
	r.Refusals[0].Holders = make([]string, 100)
	r.Refusals = append(r.Refusals, make([]Refusal, 50)...)
	r.RevokedKeys, r.RevokedImages, r.Keys = make([]KeyID, MaxRevoked), make([]ID, MaxRevoked), make([]KeyID, MaxKeys)
	b, err := r.Marshal(1)
	require.NoError(t, err)
	assert.Less(t, len(b), MaxReport)
	got, err := ParseReport(b)
	require.NoError(t, err)
	assert.Len(t, got.Refusals, MaxRefusals)
	assert.Len(t, got.Refusals[0].Holders, maxHolders)
	assert.Equal(t, strings.Repeat("ü", maxText/2), got.Slots[3].Reason, "whole characters")
	assert.Len(t, r.Slots[3].Reason, 2*maxText, "the report itself is left alone")
	wrong := sampleReport()
	wrong.Slots[1].Slot = 2
	b, err = wrong.Marshal(1)
	require.NoError(t, err)
	_, err = ParseReport(b)
	require.ErrorIs(t, err, ErrReport)
}

func TestWhereTheNextImageGoes(t *testing.T) {
	r := sampleReport()
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
	assert.Equal(t, -1, (&Report{}).Free())
	_, ok = (&Report{}).Active()
	assert.False(t, ok)
}

func TestRefusalsBecomeErrorsAgain(t *testing.T) {
	busy := &LoadError{Step: StepInUse, Slot: 1, Image: ID{1}, Want: sample().Interface, Have: StockInterface(),
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

func FuzzReport(f *testing.F) {
	b, err := sampleReport().Marshal(3)
	require.NoError(f, err)
	f.Add(b)
	b, err = new(Report).Marshal(0)
	require.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= ReportHeader { // as somebody hostile would
			binary.LittleEndian.PutUint32(b[8:], uint32(len(b)-ReportHeader))
			binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[ReportHeader:], crc32.MakeTable(crc32.Castagnoli)))
		}
		r, err := ParseReport(b)
		if err != nil {
			require.ErrorIs(t, err, ErrReport)
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
		_, err = ParseReport(again)
		require.NoError(t, err)
	})
}
