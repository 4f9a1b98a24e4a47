package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/fpga/image"
)

// trustFlags say which images a drive takes.
type trustFlags struct {
	policy string
	keys   []string
	revoke []string
}

func (f *trustFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.policy, "image-policy", "", "which images the drive takes: require (signed by a key it holds), warn or off (default: what it kept, else off)")
	fl.StringSliceVar(&f.keys, "image-key", nil, "PEM file with public keys that sign images; they take the place of those that the drive kept")
	fl.StringSliceVar(&f.revoke, "image-revoke", nil, "key:ID or image:ID to revoke, beside those that are")
}

// change is what the flags make of what a drive trusts; nil if none is given.
func (f *trustFlags) change() (func(*image.Trust) error, error) {
	if f.policy == "" && len(f.keys) == 0 && len(f.revoke) == 0 {
		return nil, nil
	}
	var policy image.Policy
	if f.policy != "" {
		var err error
		if policy, err = image.ParsePolicy(f.policy); err != nil {
			return nil, fmt.Errorf("--image-policy: %w", err)
		}
	}
	keys, err := publicKeys(f.keys)
	if err != nil {
		return nil, fmt.Errorf("--image-key: %w", err)
	}
	revokedKeys, revokedImages, err := parseRevoked(f.revoke)
	if err != nil {
		return nil, fmt.Errorf("--image-revoke: %w", err)
	}
	return func(t *image.Trust) error {
		if f.policy != "" {
			t.Policy = policy
		}
		if len(keys) > 0 {
			t.Keys = keys
		}
		t.Revoke(revokedKeys, revokedImages)
		return t.Check()
	}, nil
}

// parseRevoked reads key:ID and image:ID.
func parseRevoked(list []string) (keys []image.KeyID, images []image.ID, err error) {
	for _, s := range list {
		kind, text, _ := strings.Cut(s, ":")
		switch kind {
		case "key":
			var k image.KeyID
			if err := k.UnmarshalText([]byte(text)); err != nil || k == (image.KeyID{}) {
				return nil, nil, fmt.Errorf("%q: want key: and 64 hexadecimal digits", s)
			}
			keys = append(keys, k)
		case "image":
			var id image.ID
			if err := id.UnmarshalText([]byte(text)); err != nil || id == (image.ID{}) {
				return nil, nil, fmt.Errorf("%q: want image: and 64 hexadecimal digits", s)
			}
			images = append(images, id)
		default:
			return nil, nil, fmt.Errorf("%q: want key:ID or image:ID", s)
		}
	}
	return keys, images, nil
}
