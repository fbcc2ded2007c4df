package vet

import (
	"encoding/json"
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/gen"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/internal/rehearsal"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// sourceWords are the doc comments of the types that stand-ins play.
type sourceWords struct {
	cast    *cast
	reached *services.Reached
	read    map[string]map[string]string // by import path
}

func newWords(p *services.Package, c *cast) *sourceWords {
	return &sourceWords{cast: c, reached: p.Reach(rehearsal.WellKnown), read: map[string]map[string]string{}}
}

// text is what the source says of key in the package of the type.
func (w *sourceWords) text(obj *types.TypeName, key string) string {
	if obj == nil || obj.Pkg() == nil {
		return ""
	}
	path := obj.Pkg().Path()
	words, ok := w.read[path]
	if !ok {
		words = gen.Words(w.cast.pkg, path, w.reached.Types[path])
		w.read[path] = words
	}
	return words[key]
}

func (w *sourceWords) Type(t reflect.Type) string {
	if obj := w.cast.played[t]; obj != nil {
		return w.text(obj, obj.Name())
	}
	return ""
}

func (w *sourceWords) Method(t reflect.Type, method string) string { return w.Field(t, method) }

// Field is, where the field has no words of its own, what is said of its type: a stand-in has no name, so nobody asks.
func (w *sourceWords) Field(t reflect.Type, field string) string {
	obj := w.cast.played[t]
	if obj == nil {
		return ""
	}
	text := w.text(obj, obj.Name()+"."+field)
	if text == "" && t.Kind() == reflect.Struct {
		if f, ok := t.FieldByName(field); ok {
			ft := f.Type
			for ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			text = w.Type(ft)
		}
	}
	return text
}

func (w *sourceWords) Enum(t reflect.Type) []reflectx.EnumValue {
	obj := w.cast.played[t]
	if obj == nil || t.Kind() == reflect.Struct {
		return nil
	}
	var values []reflectx.EnumValue
	for i := 0; ; i++ {
		entry := w.text(obj, obj.Name()+"#"+strconv.Itoa(i))
		if entry == "" {
			return values
		}
		value, text, _ := strings.Cut(entry, " ")
		if quoted, err := strconv.QuotedPrefix(entry); err == nil {
			s, _ := strconv.Unquote(quoted)
			b, _ := json.Marshal(s) // strings always encode
			value, text = string(b), strings.TrimSpace(entry[len(quoted):])
		}
		values = append(values, reflectx.EnumValue{JSON: value, Text: text})
	}
}

// words reports methods and fields of inputs of which nothing is said.
func (v *checker) words(s *services.Service, words reflectx.Words) {
	w := words.(*sourceWords)
	name := s.Type.Obj().Name()
	completers := s.Completers()
	for _, m := range s.Registered(rehearsal.WellKnown) {
		method := m.Func.Name()
		if slices.Contains(completers, method) && m.Marker == "" || s.OptIn && m.Marker == "" {
			continue
		}
		pos := v.place(s, name+"."+method)
		if m.Owner != nil && v.hasSource(m.Owner.Obj()) && s.EntryTag(method).Get("desc") == "" && w.text(m.Owner.Obj(), m.Owner.Obj().Name()+"."+method) == "" {
			v.report(pos, "%s.%s: nothing says what it is for; write a doc comment, or a desc tag in the annotation block", name, method)
		}
		for param := range m.Func.Signature().Params().Variables() {
			v.fieldWords(w, name+"."+method, param.Type(), map[types.Type]bool{})
		}
	}
}

// hasSource reports whether the comments of the type's package can be read.
func (v *checker) hasSource(obj *types.TypeName) bool {
	if obj.Pkg() == nil {
		return false
	}
	_, ok := v.pkg.Dirs[obj.Pkg().Path()]
	return ok
}

// outOfSight reports whether nobody can tell what is said of the type: go vet shows one package at a time.
func (v *checker) outOfSight(obj *types.TypeName) bool {
	return v.pkg.OneOnly && obj.Pkg() != nil && obj.Pkg() != v.pkg.Types
}

// fieldWords looks at the fields of the structs that t consists of.
func (v *checker) fieldWords(w *sourceWords, site string, t types.Type, seen map[types.Type]bool) {
	t = types.Unalias(t)
	if seen[t] || v.pkg.Injected(t) {
		return
	}
	seen[t] = true
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		v.fieldWords(w, site, u.Elem(), seen)
	case *types.Slice:
		v.fieldWords(w, site, u.Elem(), seen)
	case *types.Array:
		v.fieldWords(w, site, u.Elem(), seen)
	case *types.Map:
		v.fieldWords(w, site, u.Elem(), seen)
	case *types.Struct:
		named, _ := t.(*types.Named)
		if named == nil || !v.hasSource(named.Obj()) || services.WritesItself(named) {
			return
		}
		for i := range u.NumFields() {
			f, tag := u.Field(i), reflect.StructTag(u.Tag(i))
			switch {
			case tag.Get("json") == "-" || !f.Exported() && !f.Embedded():
				continue
			case f.Embedded() && tag.Get("json") == "":
			case tag.Get("desc") == "" && tag.Get("jsonschema_description") == "" && !strings.Contains(tag.Get("jsonschema"), "description=") &&
				w.text(named.Obj(), named.Obj().Name()+"."+f.Name()) == "" && !v.typeHasWords(w, f.Type()):
				v.report(f.Pos(), "%s, field %s of %s: nothing says what it is for; write a comment, or a desc tag", site, f.Name(), named.Obj().Name())
			}
			v.fieldWords(w, site, f.Type(), seen)
		}
	}
}

func (v *checker) typeHasWords(w *sourceWords, t types.Type) bool {
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		t = ptr.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && (v.outOfSight(named.Obj()) || w.text(named.Obj(), named.Obj().Name()) != "")
}

// Words that say that a tool takes something away or lets something out, and those that do at the beginning of a name.
var (
	drastic      = []string{"delete", "remove", "drop", "purge", "erase", "destroy", "wipe", "truncate", "uninstall", "revoke"}
	drasticFirst = []string{"send", "clear", "reset", "kill", "cancel", "post", "pay", "publish", "overwrite", "transfer", "email", "deploy"}
)

// hints reports tools whose names sound as if they did harm, and of which nothing is said.
func (v *checker) hints(s *services.Service) {
	for _, m := range s.Registered(rehearsal.WellKnown) {
		name := m.Func.Name()
		if m.Marker != "" && m.Marker != "Tool" || s.OptIn && m.Marker == "" || m.Marker == "" && slices.Contains(s.Completers(), name) ||
			s.EntryTag(name).Get("hints") != "" {
			continue
		}
		for i, word := range strings.Split(reflectx.SnakeCase(name), "_") {
			if slices.Contains(drastic, word) || i == 0 && slices.Contains(drasticFirst, word) {
				v.report(v.place(s, s.Type.Obj().Name()+"."+name),
					`%s.%s: a tool that may do harm, by its name, has no hints; write for example hints:"destructive", or hints:"additive" if it is harmless`, s.Type.Obj().Name(), name)
				break
			}
		}
	}
}
