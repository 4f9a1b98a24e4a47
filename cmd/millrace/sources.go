package main

import (
	"crypto/x509"

	"github.com/spf13/pflag"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/host/source/s3"
)

// sourceFlags say how files that lie elsewhere are reached: those named by http:, https: and s3:.
type sourceFlags struct {
	endpoint  string
	authority string
	names     partitionfile.NamePatterns // patterns that select files of --in

	sources host.Sources // made when the first URI is met
}

func (s *sourceFlags) addFlags(f *pflag.FlagSet) {
	f.StringVar(&s.endpoint, "s3-endpoint", "",
		"URL of the store of s3: (default: AWS_ENDPOINT_URL, or Amazon's); credentials as for other tools, from the "+
			"environment or ~/.aws")
	f.StringVar(&s.authority, "source-ca", "",
		"certificates in PEM that servers of https: and s3: are verified by (default: the system's)")
}

// addNameFlags adds the flags that select files of folders and patterns by their names.
func (s *sourceFlags) addNameFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&s.names.Include, "include", nil,
		"take only files whose names match this pattern, as 'part-*'; may be given again")
	f.StringArrayVar(&s.names.Exclude, "exclude", nil,
		"leave out files (of a cluster: partitions) whose names match this pattern, as '*.json'; may be given again")
}

// args returns the flags as another process of this program takes them.
func (s *sourceFlags) args() (args []string) {
	if s.endpoint != "" {
		args = append(args, "--s3-endpoint", s.endpoint)
	}
	if s.authority != "" {
		args = append(args, "--source-ca", s.authority)
	}
	return args
}

// resolver returns what finds files.
func (s *sourceFlags) resolver(files []source.Location) (partitionfile.Resolver, error) {
	sources, err := s.open(files)
	if wrong := s.names.Check(); err == nil && wrong != nil {
		err = cli.Usagef("--%w", wrong)
	}
	return partitionfile.Resolver{Opener: sources.Opener, Names: s.names}, err
}

// open returns how files are read. Where all lie on this machine it returns the zero value.
func (s *sourceFlags) open(files []source.Location) (host.Sources, error) {
	far := false
	store := false
	for _, at := range files {
		far = far || at.InStore()
		store = store || at.Scheme() == "s3"
	}
	if !far || s.sources.Opener != nil {
		return s.sources, nil
	}
	stores, err := s.stores(store)
	if err != nil {
		return s.sources, err
	}
	cache, err := source.NewCache(source.Options{})
	if err != nil {
		return s.sources, err
	}
	s.sources = host.Sources{Opener: stores, Cache: cache}
	return s.sources, nil
}

// stores returns what opens URIs, those of S3 only if they are wanted.
func (s *sourceFlags) stores(wantS3 bool) (*source.Stores, error) {
	var roots *x509.CertPool
	if s.authority != "" {
		b, err := readDocument(s.authority)
		if err != nil {
			return nil, err
		}
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(b) {
			return nil, cli.Usagef("--source-ca %s: it holds no certificate in PEM", s.authority)
		}
	}
	transport := source.NewTransport(roots)
	stores := &source.Stores{Web: source.NewWeb(transport)}
	if !wantS3 {
		return stores, nil
	}
	objects, err := s3.New(s3.Options{Endpoint: s.endpoint, Transport: transport})
	switch {
	case err != nil && s.endpoint != "":
		return nil, cli.Usagef("--s3-endpoint: %w", err)
	case err != nil:
		return nil, err
	}
	stores.S3 = objects
	return stores, nil
}
