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

// A Source finds descriptions in source files. It is safe for concurrent use. Files are read when
// the first description of their package is asked for, once, and never fail: where there is no
// source, there are no descriptions.
type Source struct {
	open func(pkgPath string) *sourceDir // nil where there is none

	places *places // nil for embedded files

	mu   sync.Mutex
	dirs map[string]*sourceDir // by import path; nil where there is none. Guarded by mu.
	news int64                 // what places.news was when the nil ones were looked for. Guarded by mu.
}

// SourceDescriptions are the descriptions of the source files on the disk that the program was
// built from, as under go run and go test.
//
// A package is found by a file of it that [Methods], [Compile], [Source.AddFunc] or [Source.Locate]
// came upon, or else through the module of such a file or of the program: in it, by go.work and
// replace directives, in its vendor directory or the module cache. A build with -trimpath knows no
// directories; then the go.mod nearest to the working directory counts, but only for a program that
// lies in that module or was started by go run or go test: a directory that happens to be current
// must not describe a server.
//
// The standard library has no descriptions here: they are for programmers.
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

// onDisk has a *sourceDir by directory: what a program was built from does not change while it
// runs, so that each directory is read once, however many Sources there are.
var onDisk sync.Map

// EmbeddedDescriptions are the descriptions of source files that the program carries: fsys is the
// embed.FS of a //go:embed *.go in the package pkgPath. Directories in it are the packages below.
// "main" stands for the program's own package.
func EmbeddedDescriptions(fsys fs.FS, pkgPath string) *Source {
	s := &Source{dirs: map[string]*sourceDir{}}
	s.open = func(asked string) *sourceDir {
		rest, ok := within(asked, pkgPath)
		if !ok {
			rest, ok = within(strings.TrimSuffix(asked, "_test"), pkgPath)
		}
		// Whether they are of a package main, the files themselves say.
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

// within is the rest of an import path below the one of root.
func within(pkgPath, root string) (rest string, ok bool) {
	if pkgPath == root {
		return "", true
	}
	return strings.CutPrefix(pkgPath, root+"/")
}

// AddFunc makes the file known that the function fn was declared in.
func (s *Source) AddFunc(fn reflect.Value) {
	if pkgPath, file := funcFile(fn); file != "" {
		s.addFile(pkgPath, file)
	}
}

// Locate says that file, as runtime gives it, is one of the package that declares t.
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
			if comment == nil && strings.Contains(field, ".") { // of the arguments of a method
				comment = p.methods[baseName(t.Name())+"."+field]
			}
			text = p.plain(comment)
		})
	}
	return text
}

// Enum implements [Descriptions]. Constants that are not exported count only for a type that has no
// others.
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

// Position returns where the type t is declared, "" and 0 where the source is not found. For
// embedded files the name is the one within the embed.FS.
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

// dir is the directory of the package that declares t.
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
