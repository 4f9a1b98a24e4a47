package node

import (
	"fmt"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/host/node/drives"
	"github.com/millrace/millrace/internal/wholefile"
)

// loadImage reads the files that a configuration names for the drives' image. The zero value means that the drives
// keep the images that they have.
func loadImage(c ImageConfig) (drives.Image, error) {
	var want drives.Image
	if c.ID != "" {
		if err := want.ID.UnmarshalText([]byte(c.ID)); err != nil {
			return drives.Image{}, fmt.Errorf("image.id: %w", err)
		}
	}
	if c.File != "" {
		content, err := wholefile.Read(c.File, image.MaxSize)
		if err != nil {
			return drives.Image{}, fmt.Errorf("image.file: %w", err)
		}
		parsed, err := image.Parse(content)
		if err != nil {
			return drives.Image{}, fmt.Errorf("image.file: %s: %w", c.File, err)
		}
		if c.ID != "" && parsed.ID != want.ID {
			return drives.Image{},
				fmt.Errorf("image.file: %s is image %s, image.id says %s", c.File, parsed.ID, want.ID)
		}
		want.Content, want.ID = content, parsed.ID
	}
	var err error
	if want.Trust, err = loadTrust(c); err != nil {
		return drives.Image{}, err
	}
	return want, nil
}

// loadTrust returns the function that changes the trust of drives in this process, or nil if their trust does not
// change.
func loadTrust(c ImageConfig) (func(*image.Trust) error, error) {
	if c.Policy == "" && len(c.Keys) == 0 {
		return nil, nil
	}
	var policy image.Policy
	var configured image.Trust
	if c.Policy != "" {
		var err error
		if policy, err = image.ParsePolicy(c.Policy); err != nil {
			return nil, fmt.Errorf("image.policy: %w", err)
		}
	}
	for i, path := range c.Keys {
		b, err := wholefile.Read(path, image.MaxKeyFile)
		if err != nil {
			return nil, fmt.Errorf("image.keys[%d]: %w", i, err)
		}
		keys, err := image.ParsePublicKeys(b)
		if err != nil {
			return nil, fmt.Errorf("image.keys[%d]: %s: %w", i, path, err)
		}
		configured.Keys = append(configured.Keys, keys...)
	}
	return func(t *image.Trust) error {
		if c.Policy != "" {
			t.Policy = policy
		}
		if len(configured.Keys) > 0 {
			t.Keys = configured.Keys
		}
		return t.Check()
	}, nil
}
