// Protogen generates Go from host/api/v1/millrace.proto: messages by protoc-gen-go, services by protoc-gen-connect-go.
// It stands where protoc would, so that nothing but Go is needed. Run it as `make generate`.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/pluginpb"
)

// plugins and the parameter that each is given.
var plugins = [][2]string{
	{"protoc-gen-go", "paths=source_relative"},
	{"protoc-gen-connect-go", "paths=source_relative,simple"},
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr,
			"usage: protogen DIRECTORY FILE.proto: writes what FILE.proto in DIRECTORY generates beside it")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir, file string) error {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{dir}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(ctx, file)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: []string{file}}
	for _, f := range files {
		request.ProtoFile = append(request.ProtoFile, protoutil.ProtoFromFileDescriptor(f))
	}
	for _, p := range plugins {
		request.Parameter = proto.String(p[1])
		if err := generate(ctx, dir, p[0], request); err != nil {
			return fmt.Errorf("%s: %w", p[0], err)
		}
	}
	return nil
}

// generate runs one plugin and writes the files of its answer.
func generate(ctx context.Context, dir, plugin string, request *pluginpb.CodeGeneratorRequest) error {
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, f := range response.File {
		path := filepath.Join(dir, f.GetName())
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
