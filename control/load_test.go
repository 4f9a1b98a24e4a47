package control

import (
	"encoding/json"
	"testing"

	"github.com/millrace/millrace/control/record"
)

func FuzzStoredKeys(f *testing.F) {
	f.Add("spec", []byte(`{"id":"x"}`))
	f.Add("data/0/0001", []byte{1})
	f.Add("ranks", []byte{1})
	f.Add("e0/mark", []byte{1})
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		v := &loaded{pieces: map[int][][]byte{}}
		_ = v.sortIn("id", key, value) // an error or not, it does not panic
		_, _, _ = record.ReadSubmission(value)
		var s record.State
		_ = json.Unmarshal(value, &s)
	})
}
