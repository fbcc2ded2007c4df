package vet

import (
	"context"
	"encoding/json"
	"go/types"
	"image"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// real are the types that mcpkit tells apart by identity: they stand for themselves.
var real = map[string]reflect.Type{}

func init() {
	for _, t := range []reflect.Type{
		reflect.TypeFor[context.Context](), reflect.TypeFor[error](), reflect.TypeFor[io.Reader](), reflect.TypeFor[image.Image](),
		reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[url.URL](), reflect.TypeFor[json.RawMessage](),
		reflect.TypeFor[json.Number](), reflect.TypeFor[big.Int](), reflect.TypeFor[big.Float](), reflect.TypeFor[big.Rat](),
		reflect.TypeFor[netip.Addr](), reflect.TypeFor[netip.AddrPort](), reflect.TypeFor[netip.Prefix](), reflect.TypeFor[slog.Logger](),
		reflect.TypeFor[http.Header](), reflect.TypeFor[transport.Header](), reflect.TypeFor[oauth.Principal](),
		reflect.TypeFor[mcpkit.Tool](), reflect.TypeFor[mcpkit.Resource](), reflect.TypeFor[mcpkit.Prompt](), reflect.TypeFor[mcpkit.Skip](),
		reflect.TypeFor[mcpkit.Info](), reflect.TypeFor[mcpkit.Call](), reflect.TypeFor[mcpkit.Blob](),
		reflect.TypeFor[protocol.Content](), reflect.TypeFor[protocol.TextContent](), reflect.TypeFor[protocol.ImageContent](),
		reflect.TypeFor[protocol.AudioContent](), reflect.TypeFor[protocol.ResourceLink](), reflect.TypeFor[protocol.EmbeddedResource](),
		reflect.TypeFor[protocol.CallToolResult](), reflect.TypeFor[protocol.GetPromptResult](), reflect.TypeFor[protocol.PromptMessage](),
		reflect.TypeFor[protocol.ReadResourceResult](), reflect.TypeFor[protocol.ResourceContents](),
	} {
		real[t.PkgPath()+"."+t.Name()] = t
	}
}

// Types with methods cannot be made at run time. These stand for all that have the same.
type (
	textBoth struct{ _ string }
	textIn   struct{ _ string }
	textOut  struct{ _ string }
	jsonBoth struct{ _ string }
	jsonIn   struct{ _ string }
	jsonOut  struct{ _ string }
	failure  struct{ _ string }
	foreign  interface{ standsForAnInterface() }
)

func (textBoth) MarshalText() ([]byte, error)  { return nil, nil }
func (*textBoth) UnmarshalText([]byte) error   { return nil }
func (*textIn) UnmarshalText([]byte) error     { return nil }
func (textOut) MarshalText() ([]byte, error)   { return nil, nil }
func (jsonBoth) MarshalJSON() ([]byte, error)  { return []byte("null"), nil }
func (*jsonBoth) UnmarshalJSON(_ []byte) error { return nil }
func (*jsonIn) UnmarshalJSON([]byte) error     { return nil }
func (jsonOut) MarshalJSON() ([]byte, error)   { return []byte("null"), nil }
func (*failure) Error() string                 { return "" }

var anyType = reflect.TypeFor[any]()

// A cast makes types of package reflect of those of package go/types: with the same fields, tags and kinds, so that mcpkit
// compiles schemas and decoders of them as it would of the program's own. What cannot be made is any.
type cast struct {
	pkg    *services.Package
	made   map[types.Type]reflect.Type
	making map[types.Type]bool
	opaque map[types.Type]bool              // what is any for want of better
	played map[reflect.Type]*types.TypeName // whom a type stands for
	named  map[reflect.Kind]int             // how many of the pool are in use
	spelt  []spelling
	given  []providedType

	ownSchemas bool // a type has a schema that only the running program has
}

// A providedType is a type that methods are given, and its stand-in.
type providedType struct {
	t       types.Type
	standIn reflect.Type
}

// A spelling is how a stand-in prints, and how the type does that it stands for.
type spelling struct{ standIn, name string }

func newCast(p *services.Package) *cast {
	return &cast{
		pkg: p, made: map[types.Type]reflect.Type{}, making: map[types.Type]bool{}, opaque: map[types.Type]bool{},
		played: map[reflect.Type]*types.TypeName{}, named: map[reflect.Kind]int{},
	}
}

// spell says text with the names of the program's types.
func (c *cast) spell(text string) string {
	slices.SortStableFunc(c.spelt, func(a, b spelling) int { return len(b.standIn) - len(a.standIn) })
	for _, s := range c.spelt {
		text = strings.ReplaceAll(text, s.standIn, s.name)
	}
	return text
}

// play keeps for whom the stand-in is.
func (c *cast) play(standIn reflect.Type, t *types.Named) reflect.Type {
	c.played[standIn] = t.Obj()
	name := types.TypeString(t, func(p *types.Package) string { return p.Name() })
	if text := standIn.String(); len(text) > len("struct {}") || standIn.Name() != "" {
		c.spelt = append(c.spelt, spelling{text, name})
	}
	return standIn
}

// unique is a type that there is no second of, for one of which nothing matters but which it is.
func (c *cast) unique() reflect.Type {
	c.named[reflect.Array]++
	return reflect.ArrayOf(c.named[reflect.Array], reflect.TypeFor[failure]())
}

// of returns the stand-in of t.
func (c *cast) of(t types.Type) reflect.Type {
	t = types.Unalias(t)
	if made, ok := c.made[t]; ok {
		return made
	}
	for _, g := range c.given {
		if types.Identical(g.t, t) {
			return g.standIn
		}
	}
	if c.making[t] {
		c.opaque[t] = true
		return anyType // a type that contains itself; how deep it goes is of no matter
	}
	c.making[t] = true
	made := c.make(t)
	delete(c.making, t)
	if _, isAny := t.Underlying().(*types.Interface); made == anyType && !isAny {
		c.opaque[t] = true
	}
	c.made[t] = made
	return made
}

// make makes the stand-in. Package reflect panics about what it cannot make.
func (c *cast) make(t types.Type) (made reflect.Type) {
	defer func() {
		if recover() != nil {
			made = anyType
		}
	}()
	switch t := t.(type) {
	case *types.Named:
		return c.ofNamed(t)
	case *types.Basic:
		return basic[t.Kind()]
	case *types.Pointer:
		return reflect.PointerTo(c.of(t.Elem()))
	case *types.Slice:
		return reflect.SliceOf(c.of(t.Elem()))
	case *types.Array:
		return reflect.ArrayOf(int(t.Len()), c.of(t.Elem()))
	case *types.Map:
		return reflect.MapOf(c.of(t.Key()), c.of(t.Elem()))
	case *types.Chan:
		return reflect.ChanOf(reflect.BothDir, c.of(t.Elem()))
	case *types.Struct:
		return reflect.StructOf(c.fields(t, nil))
	case *types.Signature:
		return c.ofSignature(t)
	case *types.Interface:
		if t.NumMethods() > 0 {
			return reflect.TypeFor[foreign]()
		}
	}
	return anyType
}

var basic = map[types.BasicKind]reflect.Type{
	types.Bool: reflect.TypeFor[bool](), types.String: reflect.TypeFor[string](),
	types.Int: reflect.TypeFor[int](), types.Int8: reflect.TypeFor[int8](), types.Int16: reflect.TypeFor[int16](),
	types.Int32: reflect.TypeFor[int32](), types.Int64: reflect.TypeFor[int64](),
	types.Uint: reflect.TypeFor[uint](), types.Uint8: reflect.TypeFor[uint8](), types.Uint16: reflect.TypeFor[uint16](),
	types.Uint32: reflect.TypeFor[uint32](), types.Uint64: reflect.TypeFor[uint64](), types.Uintptr: reflect.TypeFor[uintptr](),
	types.Float32: reflect.TypeFor[float32](), types.Float64: reflect.TypeFor[float64](),
	types.Complex64: reflect.TypeFor[complex64](), types.Complex128: reflect.TypeFor[complex128](),
}

func (c *cast) ofSignature(sig *types.Signature) reflect.Type {
	list := func(tuple *types.Tuple) []reflect.Type {
		var list []reflect.Type
		for v := range tuple.Variables() {
			list = append(list, c.of(v.Type()))
		}
		return list
	}
	return reflect.FuncOf(list(sig.Params()), list(sig.Results()), sig.Variadic())
}

func (c *cast) ofNamed(t *types.Named) reflect.Type {
	obj := t.Obj()
	if obj.Pkg() == nil {
		return reflect.TypeFor[error]()
	}
	if known, ok := real[obj.Pkg().Path()+"."+obj.Name()]; ok {
		return known
	}
	has := func(name string) bool {
		m, _, _ := types.LookupFieldOrMethod(types.NewPointer(t), true, obj.Pkg(), name)
		_, ok := m.(*types.Func)
		return ok
	}
	switch {
	case has("Read") && c.isMethod(t, "Read", "func([]byte) (int, error)"):
		return reflect.TypeFor[io.Reader]()
	case has("ColorModel") && has("Bounds") && has("At"):
		return reflect.TypeFor[image.Image]()
	case c.pkg.IsUnion(t):
		c.opaque[t] = true // which object it is, the cases say
		return anyType
	case types.IsInterface(t):
		if t.Underlying().(*types.Interface).Empty() {
			return anyType
		}
		c.spelt = append(c.spelt, spelling{reflect.TypeFor[foreign]().String(), types.TypeString(t, func(p *types.Package) string { return p.Name() })})
		return reflect.TypeFor[foreign]()
	case has("JSONSchema"), has("JSONSchemaExtend"):
		c.ownSchemas = true
		return anyType
	case has("MarshalJSON") && has("UnmarshalJSON"):
		return reflect.TypeFor[jsonBoth]()
	case has("UnmarshalJSON"):
		return reflect.TypeFor[jsonIn]()
	case has("MarshalJSON"):
		return reflect.TypeFor[jsonOut]()
	case has("MarshalText") && has("UnmarshalText"):
		return reflect.TypeFor[textBoth]()
	case has("UnmarshalText"):
		return reflect.TypeFor[textIn]()
	case has("MarshalText"):
		return reflect.TypeFor[textOut]()
	case c.isMethod(t, "Error", "func() string"):
		return reflect.TypeFor[failure]()
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		return c.play(reflect.StructOf(c.fields(u, t)), t)
	case *types.Basic:
		if standIn := c.fromPool(basic[u.Kind()]); standIn != nil {
			return c.play(standIn, t)
		}
		return basic[u.Kind()]
	default:
		return c.of(u)
	}
}

func (c *cast) isMethod(t *types.Named, name, signature string) bool {
	m, _, _ := types.LookupFieldOrMethod(types.NewPointer(t), true, t.Obj().Pkg(), name)
	fn, ok := m.(*types.Func)
	if !ok {
		return false
	}
	sig := fn.Signature()
	bare := types.NewSignatureType(nil, nil, nil, bareTuple(sig.Params()), bareTuple(sig.Results()), sig.Variadic())
	return types.TypeString(bare, nil) == signature
}

func bareTuple(t *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for v := range t.Variables() {
		vars = append(vars, types.NewParam(0, nil, "", v.Type()))
	}
	return types.NewTuple(vars...)
}

// fields are those of the struct st, which is the type owner if that is not nil.
func (c *cast) fields(st *types.Struct, owner *types.Named) []reflect.StructField {
	var fields []reflect.StructField
	for i := range st.NumFields() {
		f, tag := st.Field(i), st.Tag(i)
		sf := reflect.StructField{Name: f.Name(), Anonymous: f.Embedded()}
		if !f.Exported() {
			if !f.Embedded() || strings.HasPrefix(strings.TrimSpace(tag), `json:"-"`) {
				// Only that it is there counts: a struct has none but such fields, or not.
				fields = append(fields, reflect.StructField{Name: f.Name(), PkgPath: c.pkg.Path, Type: reflect.TypeFor[struct{}]()})
				continue
			}
			sf.Name = "E_" + f.Name()
		}
		sf.Type = c.of(f.Type())
		if c.isOpaque(f.Type()) {
			tag = without(tag, "validate", "default", "example", "header")
		}
		sf.Tag = reflect.StructTag(tag)
		fields = append(fields, sf)
	}
	if owner != nil && len(fields) > 0 {
		// Structs with the same fields are the same type, unless a tag tells them apart.
		mark := "standsfor:" + strconv.Quote(types.TypeString(owner, nil)) + " "
		fields[0].Tag = reflect.StructTag(mark) + fields[0].Tag
	}
	return fields
}

// isOpaque reports whether the stand-in of t is, or holds, any for want of better.
func (c *cast) isOpaque(t types.Type) bool {
	t = types.Unalias(t)
	if c.opaque[t] {
		return true
	}
	switch t := t.(type) {
	case *types.Pointer:
		return c.isOpaque(t.Elem())
	case *types.Slice:
		return c.isOpaque(t.Elem())
	case *types.Array:
		return c.isOpaque(t.Elem())
	case *types.Map:
		return c.isOpaque(t.Elem())
	}
	return false
}

// without leaves keys out of a struct tag. One that cannot be read stays as it is.
func without(tag string, keys ...string) string {
	var kept []string
	for rest := strings.TrimLeft(tag, " "); rest != ""; {
		key, after, ok := strings.Cut(rest, ":")
		value, err := strconv.QuotedPrefix(after)
		if !ok || err != nil {
			return tag
		}
		if !slices.Contains(keys, key) {
			kept = append(kept, key+":"+value)
		}
		rest = strings.TrimLeft(after[len(value):], " ")
	}
	return strings.Join(kept, " ")
}

// The pool has types with names, which is what tells a type with constants from a plain string or number. They can only
// be declared; so there are as many as a server may be expected to need, and one more type is plain.
type (
	namedString[A, B any]  string
	namedBool[A, B any]    bool
	namedInt[A, B any]     int
	namedInt8[A, B any]    int8
	namedInt16[A, B any]   int16
	namedInt32[A, B any]   int32
	namedInt64[A, B any]   int64
	namedUint[A, B any]    uint
	namedUint8[A, B any]   uint8
	namedUint16[A, B any]  uint16
	namedUint32[A, B any]  uint32
	namedUint64[A, B any]  uint64
	namedFloat32[A, B any] float32
	namedFloat64[A, B any] float64
)

type (
	no0 struct{}
	no1 struct{}
	no2 struct{}
	no3 struct{}
	no4 struct{}
	no5 struct{}
)

var pool = map[reflect.Kind][]reflect.Type{}

func init() {
	row[no0]()
	row[no1]()
	row[no2]()
	row[no3]()
	row[no4]()
	row[no5]()
}

func row[A any]() {
	column[A, no0]()
	column[A, no1]()
	column[A, no2]()
	column[A, no3]()
	column[A, no4]()
	column[A, no5]()
}

func column[A, B any]() {
	for _, t := range []reflect.Type{
		reflect.TypeFor[namedString[A, B]](), reflect.TypeFor[namedBool[A, B]](), reflect.TypeFor[namedInt[A, B]](),
		reflect.TypeFor[namedInt8[A, B]](), reflect.TypeFor[namedInt16[A, B]](), reflect.TypeFor[namedInt32[A, B]](),
		reflect.TypeFor[namedInt64[A, B]](), reflect.TypeFor[namedUint[A, B]](), reflect.TypeFor[namedUint8[A, B]](),
		reflect.TypeFor[namedUint16[A, B]](), reflect.TypeFor[namedUint32[A, B]](), reflect.TypeFor[namedUint64[A, B]](),
		reflect.TypeFor[namedFloat32[A, B]](), reflect.TypeFor[namedFloat64[A, B]](),
	} {
		pool[t.Kind()] = append(pool[t.Kind()], t)
	}
}

// fromPool is a type with a name, nil when all are taken.
func (c *cast) fromPool(t reflect.Type) reflect.Type {
	if t == nil || c.named[t.Kind()] >= len(pool[t.Kind()]) {
		return nil
	}
	c.named[t.Kind()]++
	return pool[t.Kind()][c.named[t.Kind()]-1]
}
