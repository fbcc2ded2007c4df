package reflectx

import (
	"go/ast"
	"io/fs"
	"strconv"
	"strings"
)

// CollectDescriptions reads the Go files in the root of fsys, except test files, and returns the
// descriptions of the package named pkgName, with the keys of [RegisterDescriptions], for a
// generator to write.
//
// The descriptions are the same as those of [SourceDescriptions], except for types declared in
// functions, which CollectDescriptions ignores.
func CollectDescriptions(fsys fs.FS, pkgName string) map[string]string {
	dir := newSourceDir(fsys, ".")
	dir.load(false)
	descriptions := map[string]string{}
	p := dir.pkgs[pkgName]
	if p == nil {
		return descriptions
	}
	put := func(key string, c *ast.CommentGroup) {
		if text := p.plain(c); text != "" {
			descriptions[key] = text
		}
	}
	for name, declared := range p.types {
		put(name, declared[0].doc)
		for field, c := range p.fieldsOf(declared[0]) {
			put(name+"."+field, c)
		}
		for i, value := range p.enum(name) {
			descriptions[name+"#"+strconv.Itoa(i)] = strings.TrimSpace(value.JSON + " " + value.Text)
		}
	}
	for key, c := range p.methods {
		put(key, c)
	}
	return descriptions
}

// fieldsOf returns the fields of the type, or of the type that it is defined by.
func (p *sourcePackage) fieldsOf(st *sourceType) map[string]*ast.CommentGroup {
	for range 8 {
		next := p.types[st.base]
		if len(next) == 0 {
			break
		}
		st = next[0]
	}
	return st.fields
}
