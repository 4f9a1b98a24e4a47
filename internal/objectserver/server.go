package objectserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server serves objects until its test ends.
type Server struct {
	URL string // scheme, host and port

	// AccessKey is demanded of every request if it is not empty. The signature is not verified.
	AccessKey string

	mu       sync.Mutex // guards what follows
	objects  map[string][]byte
	versions map[string][]byte // by path and version, where the bucket keeps versions
	current  map[string]string // version by path
	before   func(w http.ResponseWriter, r *http.Request) bool
	requests int
	bytes    int64
}

// New starts a server.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{objects: map[string][]byte{}, versions: map[string][]byte{}, current: map[string]string{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Put makes or replaces the object at BUCKET/KEY. The bytes are not to be changed afterwards.
func (s *Server) Put(path string, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[path] = b
	delete(s.current, path)
}

// PutVersion makes or replaces the object at BUCKET/KEY and keeps the former versions of it.
func (s *Server) PutVersion(path, version string, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[path], s.current[path], s.versions[path+"?"+version] = b, version, b
}

// SetBefore sets the function that is called before each request that comes from now on; nil: none. Where the function
// returns true it has answered the request.
func (s *Server) SetBefore(before func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

// Requests returns how many requests came, and how many bytes of objects they asked for.
func (s *Server) Requests() (count int, asked int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, s.bytes
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests++
	before := s.before
	s.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	if s.AccessKey != "" && !strings.Contains(r.Header.Get("Authorization"), "Credential="+s.AccessKey+"/") {
		Refuse(w, http.StatusForbidden, "AccessDenied", "Access Denied.")
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/")
	if bucket := strings.TrimSuffix(path, "/"); !strings.Contains(bucket, "/") {
		s.list(w, bucket, r.URL.Query())
		return
	}
	s.mu.Lock()
	b, ok := s.objects[path]
	version := s.current[path]
	if v := r.URL.Query().Get("versionId"); v != "" {
		b, ok = s.versions[path+"?"+v]
		version = v
	}
	s.mu.Unlock()
	if !ok {
		Refuse(w, http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
		return
	}
	if version != "" {
		w.Header().Set("X-Amz-Version-Id", version)
	}
	w.Header().Set("ETag", ETag(b))
	w.Header().Set("Last-Modified", time.Unix(1_750_000_000, 0).UTC().Format(http.TimeFormat))
	counted := &countingWriter{ResponseWriter: w, server: s}
	http.ServeContent(counted, r, "", time.Time{}, bytes.NewReader(b))
}

// ETag returns the ETag of an object's bytes, with quotation marks.
func ETag(b []byte) string { return fmt.Sprintf(`"%.16x"`, sha256.Sum256(b)) }

// countingWriter counts the bytes of bodies.
type countingWriter struct {
	http.ResponseWriter
	server *Server
}

func (w *countingWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.server.bytes += int64(n)
	return n, err
}

// Refuse answers with an error as S3 does.
func Refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_ = xml.NewEncoder(w).Encode(struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}{Code: code, Message: message}) // a client that went away does not concern the server
}

// listing is an answer to ListObjectsV2.
type listing struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	Name, Prefix          string
	EncodingType          string
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []entry
	CommonPrefixes        []prefix
}

type entry struct {
	Key          string
	Size         int
	ETag         string
	LastModified time.Time
}

type prefix struct{ Prefix string }

// list answers ListObjectsV2. Pages have max-keys entries; a token is the number of entries before the page.
func (s *Server) list(w http.ResponseWriter, bucket string, query url.Values) {
	s.mu.Lock()
	var all []entry
	for path, b := range s.objects {
		if key, ok := strings.CutPrefix(path, bucket+"/"); ok {
			all = append(all, entry{Key: key, Size: len(b), ETag: ETag(b), LastModified: time.Unix(1_750_000_000, 0)})
		}
	}
	s.mu.Unlock()
	if len(all) == 0 {
		Refuse(w, http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
		return
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Key < all[j].Key })
	l := listing{Name: bucket, Prefix: query.Get("prefix"), EncodingType: query.Get("encoding-type")}
	most, err := strconv.Atoi(query.Get("max-keys"))
	if err != nil || most < 1 || most > 1000 {
		most = 1000
	}
	skip, _ := strconv.Atoi(query.Get("continuation-token"))
	encode := func(key string) string {
		if l.EncodingType == "url" {
			return url.QueryEscape(key)
		}
		return key
	}
	seen := 0
	add := func(do func()) bool {
		seen++
		if seen > skip+most {
			l.IsTruncated, l.NextContinuationToken = true, strconv.Itoa(skip+most)
			return false
		}
		if seen > skip {
			do()
		}
		return true
	}
	var folders []string
	for _, e := range all {
		rest, ok := strings.CutPrefix(e.Key, l.Prefix)
		if !ok {
			continue
		}
		if folder, _, below := strings.Cut(rest, "/"); below && query.Get("delimiter") == "/" {
			name := l.Prefix + folder + "/"
			if slices.Contains(folders, name) {
				continue
			}
			folders = append(folders, name)
			if !add(func() { l.CommonPrefixes = append(l.CommonPrefixes, prefix{encode(name)}) }) {
				break
			}
			continue
		}
		if !add(func() { e.Key = encode(e.Key); l.Contents = append(l.Contents, e) }) {
			break
		}
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(l) // a client that went away does not concern the server
}
