package reflectx

import (
	"io/fs"
	"os"
	"path"
	"reflect"
	"strings"
	"sync"
)

// A source finds descriptions in source files. It reads the files of a package once, when the first
// description is needed. It never fails: without source files there are no descriptions.
type source struct {
	locate func(pkgPath string) (dir string) // returns "" if the package is not found
	open   func(dir string) *sourceDir

	mu   sync.Mutex
	dirs map[string]*sourceDir // by directory. Guarded by mu.
}

// SourceDescriptions returns the descriptions in the source files on disk that the program was
// built from, as with go run and go test.
//
// It finds a package by one of its files that [Methods] or [Compile] has seen, or in the module of
// such a file; "mcpkit gen" describes packages of other modules. A program built with -trimpath
// contains no directories, so it has no descriptions.
//
// It has no descriptions of the standard library, whose comments are for programmers.
func SourceDescriptions() Descriptions { return onDisk }

// onDisk reads each directory once, since the source of a program does not change while it runs.
var onDisk = &source{
	locate: seen.find,
	open:   func(dir string) *sourceDir { return newSourceDir(os.DirFS(dir), ".") },
	dirs:   map[string]*sourceDir{},
}

// EmbeddedDescriptions returns the descriptions in embedded source files. fsys is the embed.FS of a
// //go:embed *.go in the package pkgPath, and its directories are the packages below. "main" stands
// for the program's own package.
func EmbeddedDescriptions(fsys fs.FS, pkgPath string) Descriptions {
	return &source{
		locate: func(asked string) string {
			for _, p := range []string{asked, strings.TrimSuffix(asked, "_test")} {
				if rest, ok := within(p, pkgPath); ok {
					return path.Join(".", rest)
				}
			}
			// The files themselves show whether the package is main.
			if asked == "main" || alias(asked) == "main" && pkgPath == "main" {
				return "."
			}
			return ""
		},
		open: func(dir string) *sourceDir { return newSourceDir(fsys, dir) },
		dirs: map[string]*sourceDir{},
	}
}

// within returns the part of an import path below root.
func within(pkgPath, root string) (rest string, ok bool) {
	if pkgPath == root {
		return "", true
	}
	return strings.CutPrefix(pkgPath, root+"/")
}

// Text implements [Descriptions]. For a method of an interface it returns the comment in the
// interface.
func (s *source) Text(t reflect.Type, member string) (text string) {
	s.with(t, func(p *sourcePackage, st *sourceType) {
		if member == "" {
			text = p.plain(st.doc)
			return
		}
		comment := p.field(t, st, member)
		if comment == nil && t.Kind() != reflect.Interface { // of a method, or of its argument
			comment = p.methods[baseName(t.Name())+"."+member]
		}
		text = p.plain(comment)
	})
	return text
}

// Enum implements [Descriptions]. It returns unexported constants only if the type has no exported
// ones.
func (s *source) Enum(t reflect.Type) (values []EnumValue) {
	switch t.Kind() {
	case reflect.Struct, reflect.Interface, reflect.Func, reflect.Map, reflect.Slice, reflect.Array, reflect.Chan, reflect.Pointer:
		return nil
	}
	s.with(t, func(p *sourcePackage, st *sourceType) {
		if !st.local {
			values = p.enum(baseName(t.Name()))
		}
	})
	return writeEnum(t, values)
}

// with calls f with the declaration of t and its package, if they are found.
func (s *source) with(t reflect.Type, f func(*sourcePackage, *sourceType)) {
	if t.PkgPath() == "" || t.Name() == "" {
		return
	}
	name := s.locate(t.PkgPath())
	if name == "" {
		return
	}
	s.mu.Lock()
	dir := s.dirs[name]
	if dir == nil {
		dir = s.open(name)
		s.dirs[name] = dir
	}
	s.mu.Unlock()
	dir.with(t, f)
}
