package source

import (
	"context"
	"fmt"
	"strings"
)

// Stores is an Opener that chooses another Opener by the scheme of a URI, and retries temporary failures.
type Stores struct {
	Web   Opener // http: and https:
	S3    Opener // s3:
	Retry Retry

	within *Prefixes // Only what is within may be opened; nil: everything.
}

// notAllowed is the advice of an error about what the prefixes do not allow.
const notAllowed = "name the beginning of the URL in stores of this worker's configuration if the worker may read it"

// Within returns stores that open only what begins with one of the prefixes, no file of this machine, and that follow
// redirects only on the same host and to what begins with one of the prefixes. They list everything: patterns come from
// whoever configures the process.
func (s *Stores) Within(prefixes Prefixes) *Stores {
	bounded := *s
	bounded.within = &prefixes
	if web, ok := s.Web.(*Web); ok {
		bounded.Web = web.within(prefixes)
	}
	return &bounded
}

// Open implements Opener.
func (s *Stores) Open(ctx context.Context, at Location, pinned Identity) (src Source, err error) {
	if s.within != nil && !s.within.Allow(at) {
		return nil, &UnsupportedError{Name: at.String(), Lacks: "this worker may not read it", Advice: notAllowed}
	}
	opener, err := s.openerOf(at)
	if err != nil {
		return nil, err
	}
	err = s.Retry.Do(ctx, at.String(), func(ctx context.Context) error {
		src, err = opener.Open(ctx, at, pinned)
		return err
	})
	if err != nil {
		return nil, err
	}
	return src, nil
}

// List implements Opener.
func (s *Stores) List(ctx context.Context, pattern Location) (objects []Object, err error) {
	opener, err := s.openerOf(pattern)
	if err != nil {
		return nil, err
	}
	err = s.Retry.Do(ctx, pattern.String(), func(ctx context.Context) error {
		objects, err = opener.List(ctx, pattern)
		return err
	})
	return objects, err
}

// openerOf returns the opener of a location's scheme.
func (s *Stores) openerOf(at Location) (Opener, error) {
	var opener Opener
	switch at.scheme {
	case "http", "https":
		opener = s.Web
	case "s3":
		opener = s.S3
	case "", "file":
		return Files{}, nil
	default:
		return nil, &UnsupportedError{
			Name: at.String(), Lacks: fmt.Sprintf("%.20q names no store", at.scheme), Advice: "want http, https, s3 or a path",
		}
	}
	if opener == nil {
		return nil, &UnsupportedError{
			Name: at.String(), Lacks: "this program was made without a client for " + strings.ToUpper(at.scheme),
			Advice: "give one to source.Stores",
		}
	}
	return opener, nil
}

// tooManyError says that a pattern matches more than may be listed.
func tooManyError(pattern Location) error {
	return &UnsupportedError{
		Name: pattern.String(), Lacks: fmt.Sprintf("it matches more than %d objects", MaxListed),
		Advice: "name fewer at once",
	}
}
