package httpbody

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Time is the time that a body of some megabytes may take, even over a slow network.
const Time = 30 * time.Second

// Within passes requests on to next. The body of a request fails if it was not read to its end within most after its
// headers.
func Within(most time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		c := http.NewResponseController(w)
		if err := c.SetReadDeadline(time.Now().Add(most)); err != nil {
			next.ServeHTTP(w, r) // no connection is behind it
			return
		}
		// The server's own request keeps the server's own body: where a call is refused before its body was read, the
		// server goes by that type when it waits with closing the connection until the caller has read the refusal.
		timed := *r
		timed.Body = &body{ReadCloser: r.Body, ended: func(err error) {
			switch {
			case errors.Is(err, io.EOF):
				_ = c.SetReadDeadline(time.Time{}) // it could be set
			case r.ProtoMajor == 1:
				w.Header().Set("Connection", "close")
			}
		}}
		next.ServeHTTP(w, &timed)
	})
}

// body calls ended when a read has failed or reached the end.
type body struct {
	io.ReadCloser
	ended func(error)
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended(err)
	}
	return n, err
}
