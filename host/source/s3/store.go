package s3

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/millrace/millrace/host/source"
)

// Options say where a store is. With the zero value everything comes from the environment.
type Options struct {
	Endpoint  string            // URL of the store; "" takes the environment's, or Amazon's
	Transport http.RoundTripper // nil is source.NewTransport with the system's roots
	// Getenv returns a variable of the environment; nil is os.Getenv. The credentials always come from the process's
	// environment.
	Getenv func(name string) string
}

// amazon is the endpoint if no other is given.
const amazon = "https://s3.amazonaws.com"

// noVersion is the version of an object in a bucket that keeps no versions.
const noVersion = "null"

// credentialTime bounds the request for the credentials of a machine's role.
const credentialTime = 5 * time.Second

// Store opens objects of S3.
type Store struct{ client *minio.Core }

// New returns a store. It sends no request.
func New(o Options) (*Store, error) {
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	first := func(values ...string) string {
		for _, v := range values {
			if v != "" {
				return v
			}
		}
		return ""
	}
	transport := o.Transport
	if transport == nil {
		transport = source.NewTransport(nil)
	}
	endpoint := first(o.Endpoint, getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"))
	region := first(getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION"))
	lookup := minio.BucketLookupAuto
	providers := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	roles := getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "" || getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != "" ||
		getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI") != ""
	if endpoint != "" {
		lookup = minio.BucketLookupPath
		region = first(region, "us-east-1")
	} else {
		endpoint = amazon
		roles = roles || !strings.EqualFold(getenv("AWS_EC2_METADATA_DISABLED"), "true")
	}
	if roles {
		client := &http.Client{Timeout: credentialTime}
		providers = append(providers, &credentials.IAM{Client: client, Region: region})
	}
	at, err := url.Parse(endpoint)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.Path != "" && at.Path != "/" ||
		at.RawQuery != "" || at.User != nil {
		return nil, fmt.Errorf("%s is not an endpoint of S3: want a URL of scheme and host, as https://s3.example:9000",
			source.ParseLocation(endpoint))
	}
	client, err := minio.NewCore(at.Host, &minio.Options{
		Creds: credentials.NewChainCredentials(providers), Secure: at.Scheme == "https", Region: region,
		BucketLookup: lookup, Transport: &guard{next: transport}, MaxRetries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("S3 at %s: %w", endpoint, err)
	}
	return &Store{client: client}, nil
}

// location is the bucket and the key of a URI. A key may hold any character.
type location struct{ uri, bucket, key string }

// locationOf returns the bucket and the key of s3://BUCKET/KEY.
func locationOf(at source.Location) (location, error) {
	bucket, key := at.HostAndKey()
	if at.Scheme() != "s3" || bucket == "" || at.String() != at.Name() || len(at.Name()) > maxURI {
		return location{}, fmt.Errorf("%.80s: want s3://BUCKET/KEY", at)
	}
	return location{uri: at.Name(), bucket: bucket, key: key}, nil
}

// maxURI bounds a URI: a key has at most 1,024 bytes, a bucket 63.
const maxURI = 1200

// Open implements source.Opener.
func (s *Store) Open(ctx context.Context, from source.Location, pinned source.Identity) (source.Source, error) {
	at, err := locationOf(from)
	if err != nil {
		return nil, err
	}
	if _, err := from.BaseName(); err != nil {
		return nil, err
	}
	options := minio.StatObjectOptions{}
	if pinned.Kind == source.ByVersion {
		options.VersionID = pinned.Value
	}
	ctx, seen := withExchange(ctx)
	info, err := s.client.StatObject(ctx, at.bucket, at.key, options)
	if err != nil {
		return nil, requestError(ctx, at.uri, err, seen)
	}
	o := &object{store: s, location: at, etag: info.ETag}
	o.identity = source.Identity{Kind: source.ByETag, Value: `"` + info.ETag + `"`, Size: info.Size}
	if info.VersionID != "" && info.VersionID != noVersion {
		o.identity.Kind, o.identity.Value = source.ByVersion, info.VersionID
	}
	switch {
	case info.ETag == "" || len(o.identity.Value) > maxValue || strings.ContainsAny(o.identity.Value, "\r\n\x00"):
		return nil, &source.AnswerError{Name: at.uri, Problem: fmt.Sprintf("the ETag %.80q", info.ETag)}
	case info.Size < 0:
		return nil, &source.AnswerError{Name: at.uri, Problem: "it does not say the size"}
	case pinned.Kind == source.ByETag && pinned.Value == `"`+info.ETag+`"` && pinned.Size == info.Size:
		o.identity = pinned // pinned before the bucket kept versions
	case !pinned.IsZero() && pinned != o.identity:
		return nil, &source.ChangedError{Name: at.uri, Pinned: pinned, Found: o.identity}
	}
	return o, nil
}

// maxValue bounds versions and ETags.
const maxValue = 1026
