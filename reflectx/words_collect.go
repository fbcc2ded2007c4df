package reflectx

import (
	"go/ast"
	"io/fs"
	"strconv"
	"strings"
)

// CollectWords reads the Go files of the directory that fsys is, without test files, and returns the words of the
// package that pkgName is the name of, with the keys that [RegisterWords] takes: what a generator writes.
//
// The words are the ones that [SourceWords] finds. Types declared in functions have none here.
func CollectWords(fsys fs.FS, pkgName string) map[string]string {
	dir := newSourceDir(fsys, ".")
	dir.load(false)
	words := map[string]string{}
	p := dir.pkgs[pkgName]
	if p == nil {
		return words
	}
	put := func(key string, c *ast.CommentGroup) {
		if text := p.plain(c); text != "" {
			words[key] = text
		}
	}
	for name, declared := range p.types {
		if st := declared[0]; !st.local {
			put(name, st.doc)
			for field, c := range p.fieldsOf(st) {
				put(name+"."+field, c)
			}
			for i, value := range p.enum(name) {
				words[name+"#"+strconv.Itoa(i)] = strings.TrimSpace(value.JSON + " " + value.Text)
			}
		}
	}
	for key, c := range p.methods {
		put(key, c)
	}
	return words
}

// fieldsOf are the fields of the type, or of the one that it is defined by.
func (p *sourcePackage) fieldsOf(st *sourceType) map[string]*ast.CommentGroup {
	for range 8 {
		next := p.types[st.base]
		if st.base == "" || len(next) == 0 || next[0].local {
			break
		}
		st = next[0]
	}
	return st.fields
}
