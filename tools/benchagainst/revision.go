package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// side is one of the two revisions that are compared.
type side struct {
	role        string // older or newer
	description string
	// root is the folder with the revision's files.
	root string
	// program is what was built there, and goVersion is the compiler that built it.
	program, goVersion string
	figures            []figure
	// remove removes what was made to have the revision's files.
	remove func() error
}

// subject is what is built of each revision.
type subject struct {
	what  string
	build []string // the arguments of the go command
	pkg   string
	// otherwise is the package of revisions that do not have pkg; "" is none.
	otherwise string
}

// workingTree returns the side of the files as they are now.
func workingTree(ctx context.Context, root string) (*side, error) {
	description, err := describe(ctx, root, "HEAD")
	if err != nil {
		return nil, err
	}
	changed, err := git(ctx, root, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return nil, err
	}
	if changed != "" {
		description += ", with changes that are not committed"
	}
	return &side{role: "newer", description: description, root: root, remove: func() error { return nil }}, nil
}

// checkOut makes a worktree of the revision in the folder.
func checkOut(ctx context.Context, root, revision, folder string) (*side, error) {
	if strings.HasPrefix(revision, "-") {
		return nil, fmt.Errorf("%s is not a revision but a flag: flags stand before the revision", revision)
	}
	description, err := describe(ctx, root, revision)
	if err != nil {
		return nil, fmt.Errorf("%s is not a revision of this clone, or was not fetched: %w", revision, err)
	}
	if _, err := git(ctx, root, "worktree", "add", "--quiet", "--detach", folder, revision); err != nil {
		return nil, err
	}
	// The worktree is also removed if the context is cancelled, as by an interrupt.
	remove := func() error {
		_, err := git(context.WithoutCancel(ctx), root, "worktree", "remove", "--force", folder)
		return err
	}
	return &side{role: "older", description: description, root: folder, remove: remove}, nil
}

// describe returns the short name, the date and the subject of a commit.
func describe(ctx context.Context, root, revision string) (string, error) {
	text, err := git(ctx, root, "log", "-1", "--date=short", "--format=%h of %cd, %s", revision, "--")
	return strings.TrimSpace(text), err
}

// git runs git in the folder and returns what it printed.
func git(ctx context.Context, folder string, args ...string) (string, error) {
	return output(ctx, folder, "git", args...)
}

// output runs a program in the folder, and returns what it wrote to its standard output. The error has what it wrote to
// its standard error.
func output(ctx context.Context, folder, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = folder
	// The command is compared as it is released.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", filepath.Base(program), strings.Join(args, " "), err)
	}
	return string(out), nil
}

// build builds the subject in the revision's folder. The program's bytes depend on the code and the compiler only: they
// have neither the folder nor the commit.
func (s *side) build(ctx context.Context, subject subject, scratch string) error {
	s.program = filepath.Join(scratch, s.role)
	pkg := subject.pkg
	if _, err := os.Stat(filepath.Join(s.root, pkg)); err != nil && subject.otherwise != "" {
		pkg = subject.otherwise
	}
	module := s.moduleOf(pkg)
	within, err := filepath.Rel(module, filepath.Join(s.root, pkg))
	if err != nil {
		return err
	}
	args := append(append([]string{}, subject.build...), "-trimpath", "-buildvcs=false", "-o", s.program,
		"./"+filepath.ToSlash(within))
	if _, err := output(ctx, module, "go", args...); err != nil {
		return fmt.Errorf("%s revision: %w", s.role, err)
	}
	info, err := buildinfo.ReadFile(s.program)
	if err != nil {
		return fmt.Errorf("%s revision has no %s: %w", s.role, subject.what, err)
	}
	s.goVersion = info.GoVersion
	return nil
}

// moduleOf returns the folder of the module that has a package: the nearest one above it with a go.mod.
func (s *side) moduleOf(pkg string) string {
	folder := filepath.Join(s.root, pkg)
	for folder != s.root && folder != filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		folder = filepath.Dir(folder)
	}
	return s.root
}

// sameBytes reports whether two files have the same bytes.
func sameBytes(a, b string) (bool, error) {
	first, err := os.ReadFile(a)
	if err != nil {
		return false, err
	}
	second, err := os.ReadFile(b)
	return bytes.Equal(first, second), err
}
