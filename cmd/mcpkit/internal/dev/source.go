package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
)

// A source is the files that a program is built from, except the standard library and the modules
// that the go command has downloaded.
type source struct {
	folders   map[string]bool   // of packages, and those above them up to the module
	files     map[string]bool   // embedded files, and files of the module such as go.mod
	embedded  map[string]bool   // folders below packages whose files are embedded
	patterns  []string          // of embedded files, as paths
	programs  []string          // the import paths of the packages main that were named
	others    []string          // those of the other packages that were named
	generated map[string]string // generated descriptions, for [services.Overlay]
}

// A listed is what go list says of a package.
type listed struct {
	Name, Dir, ImportPath              string
	Standard, DepOnly                  bool
	GoFiles, EmbedFiles, EmbedPatterns []string
	Module                             *listedModule
}

type listedModule struct {
	Dir, GoMod, Version string
	Main                bool
	Replace             *listedModule
}

// list finds the source of the package. If the go command fails, it returns what it found.
func list(ctx context.Context, opts Options) *source {
	s := &source{folders: map[string]bool{}, files: map[string]bool{}, embedded: map[string]bool{}, generated: map[string]string{}}
	run := func(args ...string) []byte {
		cmd := services.Go(ctx, args...)
		cmd.Dir = opts.Dir
		output, _ := cmd.Output() // -e reports the rest
		return output
	}
	for file := range strings.Lines(string(run("env", "GOMOD", "GOWORK"))) {
		if file = strings.TrimSpace(file); filepath.IsAbs(file) && file != os.DevNull { // nor "off"
			s.addFile(file)
		}
	}
	out := json.NewDecoder(bytes.NewReader(run("list", "-e", "-deps", "-json=Name,Dir,ImportPath,Standard,DepOnly,GoFiles,EmbedFiles,EmbedPatterns,Module", "--", opts.Package)))
	for {
		var p listed
		if err := out.Decode(&p); err != nil {
			if !errors.Is(err, io.EOF) {
				s.folders[opts.Dir] = true
			}
			break
		}
		s.add(&p)
	}
	s.folders[opts.Dir] = true
	return s
}

// fault says why the packages that were named are not one program, or "". The go command reports
// packages that it does not find.
func (s *source) fault(named string) string {
	switch {
	case len(s.programs) > 1:
		return fmt.Sprintf("%s are several programs (%s); name one of them", named, strings.Join(s.programs, ", "))
	case len(s.programs) == 0 && len(s.others) > 0:
		return fmt.Sprintf("%s is not a program; name the folder of a package main", s.others[0])
	}
	return ""
}

// add adds a package.
func (s *source) add(p *listed) {
	switch {
	case p.DepOnly || p.Name == "":
	case p.Name == "main":
		s.programs = append(s.programs, p.ImportPath)
	default:
		s.others = append(s.others, p.ImportPath)
	}
	if p.Standard || p.Dir == "" || p.Module.downloaded() {
		return
	}
	s.folders[p.Dir] = true
	if m := p.Module; m != nil && m.Dir != "" {
		for dir := p.Dir; dir != m.Dir && len(dir) > len(m.Dir); dir = filepath.Dir(dir) {
			s.folders[filepath.Dir(dir)] = true
		}
		s.addFile(m.GoMod)
	}
	for _, name := range p.EmbedFiles {
		file := filepath.Join(p.Dir, name)
		s.addFile(file)
		if dir := filepath.Dir(file); dir != p.Dir {
			s.embedded[dir] = true
		}
	}
	for _, pattern := range p.EmbedPatterns {
		pattern = strings.TrimPrefix(pattern, "all:")
		s.patterns = append(s.patterns, path.Join(filepath.ToSlash(p.Dir), pattern))
	}
	if slices.Contains(p.GoFiles, services.GeneratedFile) {
		s.generated[filepath.Join(p.Dir, services.GeneratedFile)] = ""
	}
}

// addFile adds a file and its folder.
func (s *source) addFile(file string) {
	if file != "" {
		s.files[file] = true
		s.folders[filepath.Dir(file)] = true
	}
}

// downloaded reports whether the files of a module never change.
func (m *listedModule) downloaded() bool {
	switch {
	case m == nil || m.Main:
		return false
	case m.Replace != nil:
		return m.Replace.Version != ""
	}
	return true
}

// buildFiles are the ends of the names of files that the go command compiles or reads.
var buildFiles = []string{".go", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".s", ".S", ".m", ".f", ".syso", ".swig", ".swigcxx", ".mod", ".sum", ".work"}

// has reports whether a change of the file may change the program.
func (s *source) has(file string) bool {
	name := filepath.Base(file)
	if s.files[file] {
		return true
	}
	if temporary(name) || name == services.GeneratedFile {
		return false
	}
	if slices.Contains(buildFiles, filepath.Ext(name)) {
		return true
	}
	for dir := filepath.Dir(file); len(dir) > 1 && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if s.embedded[dir] {
			return true
		}
	}
	return slices.ContainsFunc(s.patterns, func(pattern string) bool {
		matches, err := path.Match(pattern, filepath.ToSlash(file))
		return err == nil && matches
	})
}

// temporary reports whether a name is that of a hidden file or of a file that editors make while
// they save another.
func temporary(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") ||
		strings.HasSuffix(name, "___jb_tmp___") || strings.HasSuffix(name, "___jb_old___") || name == "4913" // of vim
}

// leftOut reports whether a folder that appears is not watched.
func leftOut(name string) bool {
	return temporary(name) || name == "node_modules" || name == "testdata" || name == "vendor"
}
