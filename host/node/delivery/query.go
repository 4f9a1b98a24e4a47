package delivery

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"

	"github.com/millrace/millrace/host/node/errorcode"
	"github.com/millrace/millrace/sdk/dataset"
)

// query is the query string of a request for a mini-batch.
type query struct {
	job           dataset.Digest
	epoch         uint64
	drive         string
	number, until uint64 // They are those of fragments; until is above number.
}

// parseQuery reads job=HEX&epoch=E&drive=NAME&number=N&until=U. Each parameter is there once, until may be left out,
// and there are no others. The error wraps errorcode.ErrRequest.
func parseQuery(raw string) (query, error) {
	parameters, err := queryParameters(raw)
	if err != nil {
		return query{}, err
	}
	var q query
	job := parameters["job"]
	if n, err := hex.Decode(q.job[:], []byte(job[:min(len(job), 64)])); err != nil || n != len(q.job) ||
		len(job) != 64 {
		return query{}, fmt.Errorf("%w: job %.80q: want 64 hexadecimal digits", errorcode.ErrRequest, job)
	}
	if q.drive = parameters["drive"]; q.drive == "" {
		return query{}, fmt.Errorf("%w: which drive?", errorcode.ErrRequest)
	}
	for _, p := range []struct {
		name string
		into *uint64
	}{{"epoch", &q.epoch}, {"number", &q.number}, {"until", &q.until}} {
		text, given := parameters[p.name]
		if !given && p.name == "until" {
			q.until = q.number + 1
			break
		}
		if *p.into, err = strconv.ParseUint(text, 10, 63); err != nil {
			return query{}, fmt.Errorf("%w: %s %.40q: want a number", errorcode.ErrRequest, p.name, text)
		}
	}
	if q.until <= q.number {
		return query{}, fmt.Errorf("%w: until %d is not above number %d", errorcode.ErrRequest, q.until, q.number)
	}
	return q, nil
}

// queryParameters returns the parameters of a query string by name. A parameter that is unknown, or there twice, is an
// error.
func queryParameters(raw string) (map[string]string, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: query: %w", errorcode.ErrRequest, err)
	}
	parameters := map[string]string{}
	for name, list := range values {
		switch name {
		case "job", "epoch", "drive", "number", "until":
		default:
			return nil, fmt.Errorf("%w: unknown parameter %.40q: want job, epoch, drive, number, until",
				errorcode.ErrRequest, name)
		}
		if len(list) != 1 {
			return nil, fmt.Errorf("%w: parameter %s is there %d times", errorcode.ErrRequest, name, len(list))
		}
		parameters[name] = list[0]
	}
	return parameters, nil
}
