package s3

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/millrace/millrace/host/source"
)

const (
	// maxKeys is the most keys and folders that the listing of one pattern reads.
	maxKeys = 16 * source.MaxListed
	// pageKeys is how many keys one request lists: the most that S3 sends.
	pageKeys = 1000
	// wildcards are the characters that make a part of a key a pattern; \ makes the next character an ordinary one.
	wildcards = `*?[\`
)

// List implements source.Opener. It lists folder by folder, each from the characters before the first of *, ? and [.
func (s *Store) List(ctx context.Context, pattern source.Location) ([]source.Object, error) {
	at, err := locationOf(pattern)
	if err != nil {
		return nil, err
	}
	key := at.key
	if key == "" || strings.HasSuffix(key, "/") {
		key += "*"
	}
	if _, err := path.Match(key, ""); err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	if !strings.ContainsAny(key, wildcards) {
		src, err := s.Open(ctx, pattern, source.Identity{})
		if err != nil {
			return nil, err
		}
		return []source.Object{{Location: pattern, Size: src.Size()}}, src.Close()
	}
	ctx, seen := withExchange(ctx)
	l := lister{store: s, location: at, parts: strings.Split(key, "/"), exchange: seen}
	if err := l.walk(ctx, "", 0); err != nil {
		return nil, err
	}
	if len(l.objects) == 0 {
		return nil, &source.NotFoundError{Name: pattern.String(), Err: errors.New("no key matches")}
	}
	slices.SortFunc(l.objects, func(a, b source.Object) int {
		return strings.Compare(a.Location.Name(), b.Location.Name())
	})
	return l.objects, nil
}

// lister collects the objects that a pattern matches.
type lister struct {
	location
	store    *Store
	parts    []string // The pattern has these parts between slashes.
	exchange *exchange
	seen     int // keys and folders
	objects  []source.Object
}

// walk collects the keys below a folder that match the parts of the pattern from number part on. The folder's name is
// empty or ends in a slash.
func (l *lister) walk(ctx context.Context, folder string, part int) error {
	for part < len(l.parts)-1 && !strings.ContainsAny(l.parts[part], wildcards) {
		folder += l.parts[part] + "/"
		part++
	}
	prefix := l.parts[part]
	if i := strings.IndexAny(prefix, wildcards); i >= 0 {
		prefix = prefix[:i]
	}
	owner := false
	var folders []string
	for info := range l.store.client.ListObjectsIter(ctx, l.bucket, minio.ListObjectsOptions{
		Prefix: folder + prefix, MaxKeys: pageKeys, FetchOwner: &owner,
	}) {
		if info.Err != nil {
			return requestError(ctx, l.uri, info.Err, l.exchange)
		}
		if l.seen++; l.seen > maxKeys {
			return l.tooMany()
		}
		name, below := strings.CutPrefix(info.Key, folder)
		name, isFolder := strings.CutSuffix(name, "/")
		matched, err := path.Match(l.parts[part], name)
		if err != nil || !below || strings.Contains(name, "/") {
			return &source.AnswerError{Name: l.uri, Problem: fmt.Sprintf("%.80q was not asked for", info.Key)}
		}
		switch last := part == len(l.parts)-1; {
		case !matched, name == "":
		case isFolder && !last:
			folders = append(folders, info.Key)
		case !isFolder && last:
			if info.Size < 0 || len(l.objects) == source.MaxListed {
				return l.tooMany()
			}
			at := source.ParseLocation("s3://" + l.bucket + "/" + info.Key)
			l.objects = append(l.objects, source.Object{Location: at, Size: info.Size})
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, folder := range folders {
		if err := l.walk(ctx, folder, part+1); err != nil {
			return err
		}
	}
	return nil
}

// tooMany returns the error of a pattern that matches too much.
func (l *lister) tooMany() error {
	return &source.UnsupportedError{
		Name:   l.uri,
		Lacks:  fmt.Sprintf("it matches more than %d objects, or looks at more than %d", source.MaxListed, maxKeys),
		Advice: "name fewer at once",
	}
}
