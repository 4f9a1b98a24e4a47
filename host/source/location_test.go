package source_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/host/source"
)

func TestALocationPrintsNoSecrets(t *testing.T) {
	for uri, want := range map[string]string{
		"https://user:secret@host:8443/a/b.parquet?X-Amz-Signature=secret#secret": "https://host:8443/a/b.parquet",
		"http://host?secret":            "http://host",
		"HTTP://u@host/a@b.parquet":     "HTTP://host/a@b.parquet",
		"s3://bucket/a?b#c.parquet":     "s3://bucket/a?b#c.parquet",
		"/data/what?is@this#.parquet":   "/data/what?is@this#.parquet",
		"data://of-no-scheme-that-is/?": "data://of-no-scheme-that-is/?",
	} {
		assert.Equal(t, want, source.ParseLocation(uri).String())
	}
}

func TestBaseName(t *testing.T) {
	for uri, want := range map[string]string{
		"https://host/a/day%200.parquet?sig=/x": "day 0.parquet",
		"s3://bucket/day_0.parquet":             "day_0.parquet",
		"s3://bucket/a/b%20c?d":                 "b%20c?d",
		"https://host":                          "",
		"https://host/":                         "",
		"https://host/a/":                       "",
		"https://host/a/..":                     "",
		"https://host/a%2fb":                    "",
		"https://host/a%zz":                     "",
		"s3://bucket/":                          "",
	} {
		got, err := source.ParseLocation(uri).BaseName()
		assert.Equal(t, want, got, uri)
		assert.Equal(t, want == "", err != nil, uri)
	}
}

func TestInStore(t *testing.T) {
	for name, want := range map[string]bool{
		"s3://b/k": true, "HTTPS://h/k": true, "http://h": true, "file:/x": false, "/a/b": false, "C://x": false, "": false,
		"day_*.parquet": false,
	} {
		assert.Equal(t, want, source.ParseLocation(name).InStore(), name)
	}
}

func TestIsPattern(t *testing.T) {
	for uri, want := range map[string]bool{
		"s3://b": true, "s3://b/": true, "s3://b/day_*": true, "s3://b/day_?": true, "s3://b/[ab]": true, "s3://b/d/": true,
		"s3://b/day_0": false, "https://h/day_0?sig=*": false, "https://h/day_*?sig=x": true, "https://h/days/?x=y": true,
		"https://h": true,
	} {
		assert.Equal(t, want, source.ParseLocation(uri).IsPattern(), uri)
	}
}
