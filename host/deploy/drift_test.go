package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/image"
)

func TestWhatDriftIs(t *testing.T) {
	want := image.ID{1}
	page := func(change func(*image.LogPage)) *image.LogPage {
		r := &image.LogPage{Policy: image.PolicyRequire, Slots: []image.Slot{
			{Slot: 0, Role: image.RoleStock, Image: image.ID{9}, Standing: image.StandingStock},
			{Slot: 1, Role: image.RoleField, Image: want, Active: true, Boot: true, Standing: image.StandingTrusted},
		}}
		change(r)
		return r
	}
	for _, c := range []struct {
		why    string
		runs   image.ID
		change func(*image.LogPage)
	}{
		{"", want, func(*image.LogPage) {}},
		{"it runs no image", image.ID{}, func(r *image.LogPage) { r.Slots[1].Active = false }},
		{"it runs another image", image.ID{9},
			func(r *image.LogPage) { r.Slots[0].Active, r.Slots[1] = true, image.Slot{Slot: 1} }},
		{"it runs another image: fails", image.ID{9},
			func(r *image.LogPage) { r.Slots[0].Active, r.Slots[1].Active, r.Slots[1].Reason = true, false, "fails" }},
		{"it would start with another image", want, func(r *image.LogPage) { r.Slots[1].Boot = false }},
		{"the image is revoked", want, func(r *image.LogPage) { r.Slots[1].Standing = image.StandingRevoked }},
		{"the image is not signed by a key that the drive trusts: unsigned", want,
			func(r *image.LogPage) { r.Slots[1].Standing = image.StandingUnsigned }},
		{"", want, func(r *image.LogPage) { r.Slots[1].Standing, r.Policy = image.StandingUnsigned, image.PolicyWarn }},
		{"", want, func(r *image.LogPage) { r.Slots[1].Standing = image.StandingStock }},
	} {
		runs, why := drift(page(c.change), want)
		assert.Equal(t, c.why, why)
		assert.Equal(t, c.runs, runs, c.why)
	}
}
