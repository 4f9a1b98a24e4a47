package inspection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/health"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/sdk"
)

// ErrKind says that there is no such question.
var ErrKind = errors.New("want info, health, images or files")

// Kind is a question about a drive.
type Kind string

// The questions, and the types of their answers.
const (
	Info   Kind = "info"   // *Description
	Health Kind = "health" // *health.SMARTLog
	Images Kind = "images" // *ImageList
	Files  Kind = "files"  // *[]File
)

// Description is a drive's report about itself, and its counters since it was opened.
type Description struct {
	sdk.Info
	Lost     []sdk.LostRange `json:"lost,omitempty"`
	Counters *api.Counters   `json:"counters,omitempty"`
	Images   *image.LogPage  `json:"images,omitempty"`
}

// ImageList is a drive's log page of its images.
type ImageList struct {
	Drive string `json:"drive"`
	*image.LogPage
}

// File is a member of a drive's volume.
type File struct {
	Name   string `json:"name" table:"name"`
	Bytes  int64  `json:"bytes" table:"bytes"`
	Offset int64  `json:"offset_bytes" table:"at byte"`
	Sparse bool   `json:"sparse,omitempty"` // it cannot be read
}

// Read answers a question about an open drive. If the volume is nil, Read opens it for this answer.
func Read(ctx context.Context, kind Kind, dev *sdk.Device, vol *volume.Volume) (any, error) {
	switch kind {
	case Info:
		return describe(ctx, dev)
	case Health:
		return health.Read(ctx, dev)
	case Images:
		r, err := dev.ImageLog(ctx)
		if err != nil {
			return nil, err
		}
		return &ImageList{dev.String(), r}, nil
	case Files:
		return files(ctx, dev, vol)
	}
	return nil, fmt.Errorf("question %.40q: %w", string(kind), ErrKind)
}

func describe(ctx context.Context, dev *sdk.Device) (*Description, error) {
	d := &Description{Info: dev.Info()}
	var err error
	if d.Lost, err = dev.Lost(ctx); err != nil {
		return nil, err
	}
	if !dev.HasCompute() {
		return d, nil
	}
	if d.Counters, err = host.ReadCounters(ctx, dev); err != nil {
		return nil, err
	}
	if d.Images, err = dev.ImageLog(ctx); err != nil && !errors.Is(err, sdk.ErrNoImageLog) {
		return nil, err
	}
	return d, nil
}

func files(ctx context.Context, dev *sdk.Device, vol *volume.Volume) (*[]File, error) {
	if vol == nil {
		var err error
		if vol, err = volume.Open(ctx, dev); err != nil {
			return nil, err
		}
	}
	members, err := vol.List(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]File, 0, len(members))
	for _, m := range members {
		list = append(list, File{m.Name, m.Offset, m.Size, m.Sparse})
	}
	return &list, nil
}

// Decode reads the JSON of an answer, and returns the value that Read returned.
func Decode(kind Kind, b []byte) (any, error) {
	var v any
	switch kind {
	case Info:
		v = new(Description)
	case Health:
		v = new(health.SMARTLog)
	case Images:
		v = new(ImageList)
	case Files:
		v = new([]File)
	default:
		return nil, fmt.Errorf("question %.40q: %w", string(kind), ErrKind)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return nil, fmt.Errorf("answer to %s: %w", kind, err)
	}
	if l, ok := v.(*ImageList); ok && l.LogPage == nil {
		return nil, fmt.Errorf("answer to %s: it has no log page", kind)
	}
	return v, nil
}
