package delivery

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/node/errorcode"
	"github.com/millrace/millrace/sdk/dataset"
)

var hexJob = strings.Repeat("0a", 32)

func TestParseQuery(t *testing.T) {
	q, err := parseQuery("job=" + hexJob + "&epoch=3&drive=d%200&number=5&until=9")
	require.NoError(t, err)
	assert.Equal(t, query{job: dataset.Digest([]byte(strings.Repeat("\n", 32))), epoch: 3, drive: "d 0", number: 5,
		until: 9}, q)
	q, err = parseQuery("number=5&drive=d&epoch=0&job=" + hexJob)
	require.NoError(t, err)
	assert.EqualValues(t, 6, q.until, "this one alone")
	good := "job=" + hexJob + "&epoch=3&drive=d&number=5"
	for raw, want := range map[string]string{
		"":                  "want 64 hexadecimal digits",
		"job=" + hexJob:     "which drive",
		good + "&until=5":   "until 5 is not above number 5",
		good + "&until=0":   "until 0",
		good + "&until=":    "want a number",
		good + "&until=-1":  "want a number",
		good + "&number=6":  "parameter number is there 2 times",
		good + "&x=1":       `unknown parameter "x"`,
		good + "&until=%zz": "query",
		good + ";until=7":   "query",
		good[:len(good)-1]:  "want a number",
		strings.Replace(good, "5", "18446744073709551616", 1): "want a number",
		strings.Replace(good, "5", "18446744073709551615", 1): "want a number",
		strings.Replace(good, "0a", "0", 1):                   "64 hexadecimal digits",
		strings.Replace(good, "0a", "0a0a", 1):                "64 hexadecimal digits",
		strings.Replace(good, "0a", "zz", 1):                  "64 hexadecimal digits",
		strings.Replace(good, "drive=d", "drive=", 1):         "which drive",
		strings.Replace(good, "epoch=3&", "", 1):              "epoch",
	} {
		_, err := parseQuery(raw)
		require.ErrorIs(t, err, errorcode.ErrRequest, raw)
		assert.ErrorContains(t, err, want, raw)
	}
}

func FuzzParseQuery(f *testing.F) {
	f.Add("job=" + hexJob + "&epoch=3&drive=d&number=5&until=9")
	f.Add("job=" + hexJob + "&epoch=0&drive=%64&number=0")
	f.Add("job=a&job=b")
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := parseQuery(raw)
		if err != nil {
			require.ErrorIs(t, err, errorcode.ErrRequest)
			require.Less(t, len(err.Error()), 4*len(raw)+500)
			return
		}
		require.Greater(t, q.until, q.number)
		require.NotEmpty(t, q.drive)
	})
}
