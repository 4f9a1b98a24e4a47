package processor

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestStatsCountEveryField checks that every field of Stats is in sums, differences and shares.
func TestStatsCountEveryField(t *testing.T) {
	var a, b Stats
	for i := range reflect.TypeFor[Stats]().NumField() {
		reflect.ValueOf(&a).Elem().Field(i).SetInt(int64(100 * (i + 1)))
		reflect.ValueOf(&b).Elem().Field(i).SetInt(int64(30 * (i + 1)))
	}
	sum, rest, share := a.Add(b), a.Sub(b), a.Share(a.Rows/4)
	for i := range reflect.TypeFor[Stats]().NumField() {
		name := reflect.TypeFor[Stats]().Field(i).Name
		assert.EqualValues(t, 130*(i+1), reflect.ValueOf(sum).Field(i).Int(), name)
		assert.EqualValues(t, 70*(i+1), reflect.ValueOf(rest).Field(i).Int(), name)
		assert.EqualValues(t, 25*(i+1), reflect.ValueOf(share).Field(i).Int(), name)
	}
	assert.Equal(t, a, a.Share(a.Rows), "all of it")
	assert.Equal(t, a, a.Share(a.Rows+1))
	assert.Equal(t, Stats{}, Stats{}.Share(0))
}
