package reflectx

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
)

// A Source finds descriptions in source files. It is safe for concurrent use. It reads the files of
// a package once, when the first description is needed. It never fails: without source files there
// are no descriptions.
type Source struct {
	open func(pkgPath string) *sourceDir // returns nil if there is none

	places *places // nil for embedded files

	mu   sync.Mutex
	dirs map[string]*sourceDir // by import path; nil if there is none. Guarded by mu.
	news int64                 // places.news at the time of the search for the nil ones. Guarded by mu.
}

// SourceDescriptions returns the descriptions in the source files on disk that the program was
// built from, as with go run and go test.
//
// It finds a package by one of its files that [Methods], [Compile], [Source.AddFunc] or
// [Source.Locate] has seen. Otherwise it searches the module of such a file or of the program,
// including go.work and replace directives, the vendor directory and the module cache. A build with
// -trimpath does not contain directories. Then it uses the go.mod nearest to the working directory,
// but only if the program is in that module or was started by go run or go test, so that an
// unrelated directory does not describe a server.
//
// It has no descriptions of the standard library, whose comments are for programmers.
func SourceDescriptions() *Source {
	s := &Source{dirs: map[string]*sourceDir{}, places: newPlaces()}
	s.open = func(pkgPath string) *sourceDir {
		if dir := s.places.find(pkgPath); dir != "" {
			d, _ := onDisk.LoadOrStore(dir, newSourceDir(os.DirFS(dir), "."))
			return d.(*sourceDir)
		}
		return nil
	}
	return s
}

// onDisk holds a *sourceDir by directory. The source of a program does not change while it runs, so
// each directory is read once for all Sources.
var onDisk sync.Map

// EmbeddedDescriptions returns the descriptions in embedded source files. fsys is the embed.FS of a
// //go:embed *.go in the package pkgPath, and its directories are the packages below. "main" stands
// for the program's own package.
func EmbeddedDescriptions(fsys fs.FS, pkgPath string) *Source {
	s := &Source{dirs: map[string]*sourceDir{}}
	s.open = func(asked string) *sourceDir {
		rest, ok := within(asked, pkgPath)
		if !ok {
			rest, ok = within(strings.TrimSuffix(asked, "_test"), pkgPath)
		}
		// The files themselves show whether the package is main.
		if !ok && asked != "main" && (alias(asked) != "main" || pkgPath != "main") {
			return nil
		}
		if !ok {
			rest = ""
		}
		return newSourceDir(fsys, path.Join(".", rest))
	}
	return s
}

// within returns the part of an import path below root.
func within(pkgPath, root string) (rest string, ok bool) {
	if pkgPath == root {
		return "", true
	}
	return strings.CutPrefix(pkgPath, root+"/")
}

// AddFunc adds the file in which the function fn is declared.
func (s *Source) AddFunc(fn reflect.Value) {
	if pkgPath, file := funcFile(fn); file != "" {
		s.addFile(pkgPath, file)
	}
}

// Locate adds a file, named as in package runtime, of the package that declares t.
func (s *Source) Locate(t reflect.Type, file string) {
	if t != nil {
		s.addFile(t.PkgPath(), file)
	}
}

func (s *Source) addFile(pkgPath, file string) {
	if s.places != nil {
		s.places.add(pkgPath, file)
	}
}

// Type implements [Descriptions].
func (s *Source) Type(t reflect.Type) (text string) {
	s.with(t, func(p *sourcePackage, st *sourceType) { text = p.plain(st.doc) })
	return text
}

// Method implements [Descriptions]. For an interface type it returns the comment in the interface.
func (s *Source) Method(t reflect.Type, method string) (text string) {
	s.with(t, func(p *sourcePackage, st *sourceType) {
		if t.Kind() == reflect.Interface {
			text = p.plain(p.field(t, st, method))
			return
		}
		text = p.plain(p.methods[baseName(t.Name())+"."+method])
	})
	return text
}

// Field implements [Descriptions].
func (s *Source) Field(t reflect.Type, field string) (text string) {
	if t.Kind() == reflect.Struct {
		s.with(t, func(p *sourcePackage, st *sourceType) {
			comment := p.field(t, st, field)
			if comment == nil && strings.Contains(field, ".") { // of a method's argument
				comment = p.methods[baseName(t.Name())+"."+field]
			}
			text = p.plain(comment)
		})
	}
	return text
}

// Enum implements [Descriptions]. It returns unexported constants only if the type has no exported
// ones.
func (s *Source) Enum(t reflect.Type) (values []EnumValue) {
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

// Position returns where the type t is declared, or "" and 0 if the source is not found. For
// embedded files, the name is that in the embed.FS.
func (s *Source) Position(t reflect.Type) (file string, line int) {
	dir := s.dir(t)
	if dir == nil {
		return "", 0
	}
	dir.with(t, func(_ *sourcePackage, st *sourceType) {
		pos := dir.fset.Position(st.pos)
		file, line = pos.Filename, pos.Line
	})
	if file != "" && s.places != nil {
		file = filepath.Join(s.places.find(t.PkgPath()), filepath.FromSlash(file))
	}
	return file, line
}

func (s *Source) with(t reflect.Type, f func(*sourcePackage, *sourceType)) {
	if dir := s.dir(t); dir != nil {
		dir.with(t, f)
	}
}

// dir returns the directory of the package that declares t.
func (s *Source) dir(t reflect.Type) *sourceDir {
	pkgPath := t.PkgPath()
	if pkgPath == "" || t.Name() == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places != nil {
		if news := s.places.news(); news != s.news {
			s.news = news
			maps.DeleteFunc(s.dirs, func(_ string, dir *sourceDir) bool { return dir == nil })
		}
	}
	dir, ok := s.dirs[pkgPath]
	if !ok {
		dir = s.open(pkgPath)
		s.dirs[pkgPath] = dir
	}
	return dir
}
