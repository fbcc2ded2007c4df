package reflectx

import (
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-playground/validator/v10"
	"github.com/invopop/jsonschema"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// A shape says how values of a type stand in JSON.
type shape int

const (
	shapeAny shape = iota
	shapeBool
	shapeInt
	shapeUint
	shapeFloat
	shapeString
	shapeBytes    // base64
	shapeTime     // RFC 3339
	shapeDuration // 1h30m
	shapeURL
	shapeText   // UnmarshalText
	shapeBig    // big.Int
	shapeNumber // json.Number
	shapeRaw    // json.RawMessage
	shapeCustom // UnmarshalJSON
	shapeSlice
	shapeArray
	shapeMap
	shapeStruct
	shapeUnion // an interface whose types are known
)

// A reader reads the value at d.b[i] into v and returns the index after the value.
type reader func(d *decoder, n *node, i int, v reflect.Value) int

// A node is a type at one place: the type itself and what the tags of its place add.
type node struct {
	t      reflect.Type // without the pointers
	ptrs   int          // how many pointers lead to it
	shape  shape
	nullOK bool // null is a value like any other
	isKey  bool // the name of a map's member
	own    bool // the type's method JSONSchema says everything
	there  bool // of a union that is written: it is not nil

	read      reader // from the pointers on
	readValue reader // behind the pointers

	elem *node   // of slice, array and map
	key  *node   // of a map
	obj  *object // of a struct

	union *union // of a union

	*checks
	lasting *checks // those of calls, where others hold until the input is compiled; nil where all last

	kw      *jsonschema.Schema // the keywords of this place, without children
	phrases []string           // what want says beyond the keywords: `starting with "a"`
	notes   []string           // sentences for the description, for what no keyword says
	want    string
	wide    string // want with the limits of a type of 64 bits
}

// checks are the compiled rules of a node, by what they take.
type checks struct {
	bools  []func(bool) bool
	strs   []func(string) bool
	ints   []func(int64) bool
	uints  []func(uint64) bool
	floats []func(float64) bool
	lens   []func(int) bool
	values []valueRule
}

// noChecks stands for those of the many nodes that have none.
var noChecks checks

func (c *checks) empty() bool {
	return len(c.bools)+len(c.strs)+len(c.ints)+len(c.uints)+len(c.floats)+len(c.lens)+len(c.values) == 0
}

// A valueRule takes the decoded value.
type valueRule func(ctx context.Context, v reflect.Value) bool

// stringSlice returns the []string that v holds, nil where v is something else.
func (n *node) stringSlice(v reflect.Value) *[]string {
	if !fast || n.t != stringsType || n.elem.shape != shapeString || n.elem.ptrs > 0 {
		return nil
	}
	return v.Addr().Interface().(*[]string)
}

// An object is a struct type. All places with the type share it.
type object struct {
	t         reflect.Type
	place     descriptionPlace
	fields    []*field
	names     []string
	index     map[string]int // nil where there are few
	absent    bool           // an absent member means something: a default, or a violation
	rules     []memberRule
	compiling bool
	recursive bool
}

// A field is a member of an object.
type field struct {
	Field
	jsonName []byte
	node     *node
	ready    reflect.Value // the default, where values may share it
	example  json.RawMessage
	owner    reflect.Type         // the struct that declares it
	sf       *reflect.StructField // nil once compiled
	validate string               // the tag
	rules    []rule               // of its own validate tag, before dive
	mayOmit  bool                 // the encoder may leave it out
	faulty   bool                 // what its tags or its type say is wrong, so its values show nothing
	inner    bool                 // a struct by value with defaults in it
	optional bool                 // the validate tag says that it may be absent
	notNull  bool                 // required in so many words, so that null does not count where the type takes it
	skipNull bool                 // null counts as absent
}

type direction bool

const (
	forInput  direction = false
	forOutput direction = true
)

// A compiler makes nodes. It collects every mistake instead of stopping at the first.
type compiler struct {
	site     string
	path     []string // the fields on the way to the type being compiled
	o        InputOptions
	dir      direction
	params   bool // the root is made of plain parameters
	validate *validator.Validate
	objects  map[objectKey]*object
	unions   map[reflect.Type]*union
	errs     Errors
	asksAll  bool             // a rule needs the whole struct
	before   string           // the rule before the one that is being compiled
	place    descriptionPlace // of the type that is being compiled
	scratch  []*jsonschema.Schema
	arena    *arena // of results
	unasked  checks // of results, which nobody holds to rules
}

func newCompiler(site string, o InputOptions, dir direction) *compiler {
	c := &compiler{site: site, o: o, dir: dir, validate: o.Validate, objects: map[objectKey]*object{}, place: descriptionPlace{o.Owner, o.Method}}
	if c.validate == nil {
		c.validate = defaultValidate()
	}
	return c
}

// errorf notes a mistake at the field being compiled.
func (c *compiler) errorf(format string, args ...any) {
	site := c.site
	if len(c.path) > 0 {
		site += ", field " + strings.Join(c.path, ".")
		if c.params {
			site = c.site + ", parameter " + strings.Join(c.path, ".")
		}
	}
	err := &Error{Site: site, Msg: fmt.Sprintf(format, args...)}
	for _, e := range c.errs {
		if *e == *err {
			return // a type that is used twice is wrong once
		}
	}
	c.errs = append(c.errs, err)
}

// input compiles the root of an input.
func (c *compiler) input(t reflect.Type) (*Input, error) {
	defer c.recycle()
	if m := ownJSON(t, forInput); m != "" {
		c.errorf("%s has the method %s, so its fields do not say what it takes; write a plain struct", typeText(t), m)
		return nil, c.errs
	}
	in := &Input{what: c.o.What, repair: c.o.Repair, repaired: c.o.Repaired, validate: c.validate}
	if in.repaired == nil {
		in.repaired = func(context.Context) {}
	}
	in.root = c.node(t, nil)
	c.finish(in.root)
	in.own = c.o.Validate != nil
	in.asks = c.asksAll || in.own
	if in.asks {
		c.needsDive(in.root, map[*object]bool{})
	}
	c.probeAll(t)
	c.contradictions(in.root)
	c.defaults(in)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	in.schema = c.publish(in.root)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	in.makeExample()
	release(in.root, map[*object]bool{})
	return in, nil
}

// release lets go of what only compiling needs. Keywords are large and have been written.
func release(n *node, done map[*object]bool) {
	n.kw, n.phrases, n.notes = nil, nil, nil
	if n.lasting != nil {
		n.checks, n.lasting = n.lasting, nil
	}
	if n.checks.empty() {
		n.checks = &noChecks
	}
	if n.key != nil {
		release(n.key, done)
	}
	if n.elem != nil {
		release(n.elem, done)
	}
	if n.union != nil {
		for _, one := range n.union.cases {
			release(one, done)
		}
	}
	if n.obj == nil || done[n.obj] {
		return
	}
	done[n.obj] = true
	for _, f := range n.obj.fields {
		f.sf, f.rules, f.example = nil, nil, nil
		release(f.node, done)
	}
}

// list returns the fields of o as callers see them.
func (o *object) list(above map[*object]bool) []Field {
	if above[o] {
		return nil
	}
	above[o] = true
	defer delete(above, o)
	fields := make([]Field, len(o.fields))
	for i, f := range o.fields {
		fields[i] = f.Field
		n := f.node
		for n.elem != nil {
			n = n.elem
		}
		switch {
		case n.obj != nil:
			fields[i].Fields = n.obj.list(above)
		case n.union != nil:
			fields[i].Fields = n.union.fields(above)
		}
	}
	return fields
}

var (
	stringsType   = reflect.TypeFor[[]string]()
	timeType      = reflect.TypeFor[time.Time]()
	durationType  = reflect.TypeFor[time.Duration]()
	urlType       = reflect.TypeFor[url.URL]()
	bigIntType    = reflect.TypeFor[big.Int]()
	numberType    = reflect.TypeFor[json.Number]()
	rawType       = reflect.TypeFor[json.RawMessage]()
	unmarshalJSON = reflect.TypeFor[json.Unmarshaler]()
	unmarshalText = reflect.TypeFor[encoding.TextUnmarshaler]()
	marshalJSON   = reflect.TypeFor[json.Marshaler]()
	marshalText   = reflect.TypeFor[encoding.TextMarshaler]()
)

// ownJSON returns the name of the method by which t reads or writes its JSON itself, "" where it has none.
func ownJSON(t reflect.Type, dir direction) string {
	p := reflect.PointerTo(t)
	switch {
	case dir == forInput && p.Implements(unmarshalJSON):
		return "UnmarshalJSON"
	case dir == forInput && p.Implements(unmarshalText):
		return "UnmarshalText"
	case dir == forOutput && p.Implements(marshalJSON):
		return "MarshalJSON"
	case dir == forOutput && p.Implements(marshalText):
		return "MarshalText"
	}
	return ""
}

// shapeOf returns the shape of t, which is no pointer, and false where JSON has nothing for it.
func (c *compiler) shapeOf(t reflect.Type) (shape, bool) {
	if c.o.Unions[t] != nil {
		return shapeUnion, true
	}
	switch t {
	case timeType:
		return shapeTime, true
	case bigIntType:
		return shapeBig, true
	case rawType:
		return shapeRaw, true
	case numberType:
		if c.dir == forOutput {
			return shapeString, true // the encoder quotes it
		}
		return shapeNumber, true
	case durationType:
		return shapeDuration, true
	case urlType:
		return shapeURL, true
	}
	switch ownJSON(t, c.dir) {
	case "UnmarshalJSON", "MarshalJSON":
		return shapeCustom, true
	case "UnmarshalText", "MarshalText":
		return shapeText, true
	}
	return c.shapeOfKind(t)
}

func (c *compiler) shapeOfKind(t reflect.Type) (shape, bool) {
	switch t.Kind() {
	case reflect.Bool:
		return shapeBool, true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return shapeInt, true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return shapeUint, true
	case reflect.Float32, reflect.Float64:
		return shapeFloat, true
	case reflect.String:
		return shapeString, true
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && ownJSON(t.Elem(), c.dir) == "" {
			return shapeBytes, true
		}
		return shapeSlice, true
	case reflect.Array:
		if c.dir == forOutput && t.Elem().Kind() == reflect.Uint8 && ownJSON(t.Elem(), c.dir) == "" {
			return shapeBytes, true
		}
		return shapeArray, true
	case reflect.Map:
		return shapeMap, true
	case reflect.Struct:
		return shapeStruct, true
	case reflect.Interface:
		return shapeAny, t.NumMethod() == 0 || c.dir == forOutput
	}
	return shapeAny, false
}

// node compiles t. kw are the keywords that its place has already, nil for those of the type alone.
func (c *compiler) node(t reflect.Type, kw *jsonschema.Schema) *node {
	n := c.newNode()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
		n.ptrs++
	}
	n.t = t
	var ok bool
	if t == errorType && c.dir == forOutput {
		c.errorf("an error has no JSON, so that its text would be lost; write a string, or hide the field with json:\"-\"")
		n.kw = &jsonschema.Schema{}
		return n
	}
	if n.shape, ok = c.shapeOf(t); !ok && t.Kind() == reflect.Interface {
		c.errorf("the interface %s has no JSON; %stake any, or hide the field with json:\"-\"", typeText(t), cmp.Or(c.o.give(t), "register its types as a union, "))
		n.kw = &jsonschema.Schema{}
		return n
	} else if !ok {
		c.errorf("the type %s has no JSON; write a struct, a map, a slice, a string, a number, a bool or any, or hide the field with json:\"-\"", typeText(t))
		n.kw = &jsonschema.Schema{}
		return n
	}
	own := ownSchema(t)
	n.own = own != nil
	switch {
	case kw == nil:
		n.kw = c.keywords(t)
	case n.own && kw.Description == "":
		kw.Description = own.Description // the tags have overwritten what the type says
		fallthrough
	default:
		n.kw = kw
	}
	n.nullOK = n.shape == shapeAny || n.shape == shapeRaw || n.shape == shapeCustom && n.kw.Type == ""
	switch n.shape {
	case shapeSlice, shapeArray:
		var items *jsonschema.Schema
		if kw != nil && !n.own {
			items, kw.Items = kw.Items, nil // written from the element's node
		}
		n.elem = c.node(t.Elem(), items)
	case shapeMap:
		n.elem = c.node(t.Elem(), nil)
		n.key = c.keyNode(t)
	case shapeStruct:
		n.obj = c.object(t)
	case shapeUnion:
		n.union = c.unionOf(t)
	}
	n.readValue = readers[n.shape]
	n.read = n.readValue
	if n.ptrs > 0 {
		n.read = readPointer
	}
	return n
}

// An arena holds what compiling a result needs and its schema, which is all that is left of it, does not. Inputs keep
// their nodes and fields. Without arenas and the pool of schemas, registering a thousand tools (BenchmarkRegister1000 of
// bench/) takes 57 MB and 549,000 allocations in place of 32 MB and 476,000.
type arena struct {
	nodes  []node
	fields []field
}

var arenas = sync.Pool{New: func() any { return &arena{nodes: make([]node, 0, 32), fields: make([]field, 0, 32)} }}

func (c *compiler) room() *arena {
	if c.arena == nil {
		c.arena = arenas.Get().(*arena)
	}
	return c.arena
}

func (c *compiler) newNode() *node {
	if c.dir == forInput {
		return &node{checks: &checks{}}
	}
	a := c.room()
	if len(a.nodes) == cap(a.nodes) {
		a.nodes = make([]node, 0, 2*cap(a.nodes)) // the others live as long as something points to them
	}
	a.nodes = a.nodes[:len(a.nodes)+1]
	n := &a.nodes[len(a.nodes)-1]
	n.checks = &c.unasked // nobody holds results to rules
	return n
}

func (c *compiler) newFields(count int) []field {
	if c.dir == forInput {
		return make([]field, count)
	}
	a := c.room()
	if len(a.fields)+count > cap(a.fields) {
		a.fields = make([]field, 0, max(2*cap(a.fields), count))
	}
	from := len(a.fields)
	a.fields = a.fields[:from+count]
	return a.fields[from : from+count : from+count]
}

// release gives the arena back, empty.
func (a *arena) release() {
	const most = 1024 // of a type that is larger than nearly all
	if cap(a.nodes) > most || cap(a.fields) > most {
		return
	}
	clear(a.nodes)
	clear(a.fields)
	a.nodes, a.fields = a.nodes[:0], a.fields[:0]
	arenas.Put(a)
}

// readers is by shape. It is filled in init since the readers reach it through nodes.
var readers [shapeUnion + 1]reader

func init() {
	readers = [...]reader{
		shapeAny: readAny, shapeBool: readBool, shapeInt: readInt, shapeUint: readUint, shapeFloat: readFloat,
		shapeString: readString, shapeBytes: readBytes, shapeTime: readTime, shapeDuration: readDuration,
		shapeURL: readURL, shapeText: readText, shapeBig: readBig, shapeNumber: readNumber, shapeRaw: readRaw,
		shapeCustom: readCustom, shapeSlice: readSlice, shapeArray: readArray, shapeMap: readMap, shapeStruct: readStruct, shapeUnion: readUnion,
	}
}

// keyNode compiles the key type of the map type t.
func (c *compiler) keyNode(t reflect.Type) *node {
	k := t.Key()
	n := &node{t: k, isKey: true, checks: &checks{}}
	switch s, _ := c.shapeOf(k); s {
	case shapeString:
		n.shape, n.kw, n.read = s, &jsonschema.Schema{}, readString
	case shapeText:
		n.shape, n.kw, n.read = s, &jsonschema.Schema{}, readText
	case shapeInt, shapeUint:
		n.shape, n.kw, n.read = s, &jsonschema.Schema{Pattern: "^(0|[1-9][0-9]*)$"}, readIntKey
		if s == shapeInt {
			n.kw.Pattern = "^(0|-?[1-9][0-9]*)$"
		}
	default:
		c.errorf("the type %s has keys that JSON has not; write a map with string or integer keys", typeText(t))
		n.kw = &jsonschema.Schema{}
	}
	n.readValue = n.read
	return n
}

// An objectKey names an object of a compiler: a struct type and, where it is a case of a union, which one.
type objectKey struct {
	t                   reflect.Type
	discriminator, name string
	place               descriptionPlace // of a struct without a name
}

// A descriptionPlace is where a struct without a name is written: in the type owner, at the field that path leads to.
type descriptionPlace struct {
	owner reflect.Type
	path  string
}

// object compiles the struct type t.
func (c *compiler) object(t reflect.Type) *object { return c.objectOf(objectKey{t: t}) }

func (c *compiler) objectOf(key objectKey) *object {
	at := descriptionPlace{owner: key.t}
	if key.t.Name() == "" {
		key.place, at = c.place, c.place
	}
	if o := c.objects[key]; o != nil {
		o.recursive = o.recursive || o.compiling
		return o
	}
	o := &object{t: key.t, place: at, compiling: true}
	c.objects[key] = o
	members := c.members(key.t)
	fields := c.newFields(len(members))
	o.fields, o.names = make([]*field, 0, len(members)+1), make([]string, 0, len(members)+1)
	if key.discriminator != "" {
		o.fields, o.names, o.absent = append(o.fields, c.discriminatorField(key)), append(o.names, key.discriminator), true
	}
	for i := range members {
		m, f := &members[i], &fields[i]
		*f = field{owner: m.owner, sf: &m.sf, validate: m.sf.Tag.Get("validate"), jsonName: []byte(m.name), mayOmit: m.mayOmit}
		f.Name, f.GoName, f.Index, f.Type = m.name, m.sf.Name, m.index, m.sf.Type
		o.fields = append(o.fields, f)
		o.names = append(o.names, f.Name)
		if f.Name == key.discriminator {
			c.errorf("%s has a member %q, which as a case of a union it gets anyway; leave the field %s out", typeText(key.t), f.Name, f.GoName)
		}
	}
	if len(o.fields) > fewFields {
		o.index = make(map[string]int, len(o.fields))
		for i, name := range o.names {
			o.index[name] = i
		}
	}
	props := c.reflectFields(o)
	for _, f := range o.fields {
		if f.sf != nil { // not of the discriminator
			c.enter(f, func() { c.field(o, f, props[f.Name]) })
		}
	}
	for _, f := range o.fields {
		c.enter(f, func() { c.memberRules(o, f) })
	}
	o.compiling = false
	return o
}

// fewFields are found faster by looking at each.
const fewFields = 8

// enter runs fn with f as the place of mistakes.
func (c *compiler) enter(f *field, fn func()) {
	name := f.GoName
	if c.params && len(c.path) == 0 {
		name = strconv.Quote(f.Name)
	}
	c.path = append(c.path, name)
	known := len(c.errs)
	fn()
	f.faulty = f.faulty || len(c.errs) > known
	c.path = c.path[:len(c.path)-1]
}

// field compiles one member: its type, then its tags. props are the keywords that invopop read from them.
func (c *compiler) field(o *object, f *field, props *jsonschema.Schema) {
	outer := c.place
	c.place = o.placeOf(f)
	f.node = c.node(f.Type, props)
	c.place = outer
	c.tagKeys(f)
	n := f.node
	tag := f.sf.Tag
	if d := tag.Get("desc"); d != "" {
		n.kw.Description = d
	}
	if t := tag.Get("title"); t != "" {
		n.kw.Title = t
	}
	f.Complete, f.Secret = tag.Get("complete"), c.boolTag(tag, "secret")
	if tag.Get("jsonschema") != "" {
		c.schemaTag(f)
	}
	c.header(f)
	if c.dir == forInput { // nobody holds results to rules, and a schema that promised them would be a trap for clients
		c.rules(f)
	}
	c.defaultTag(f)
	if c.dir == forInput {
		c.presence(f)
	}
	if n.shape == shapeStruct && n.ptrs == 0 {
		f.inner = slices.ContainsFunc(n.obj.fields, func(f *field) bool { return f.Default != nil || f.inner })
	}
	o.absent = o.absent || f.Required || f.Default != nil || f.inner
}

// presence settles whether the member must be there: unless something says that it need not be.
func (c *compiler) presence(f *field) {
	n := f.node
	if c.o.Form && n.shape == shapeBool && n.ptrs == 0 && f.Default == nil && n.accepts(json.RawMessage("false")) {
		f.Default = json.RawMessage("false") // a box that nobody ticked
	}
	optional := f.mayOmit || f.optional || n.ptrs > 0 || f.Default != nil || len(f.rules) > 0
	f.Required = f.Required || !optional
	f.skipNull = !f.Required && !n.nullOK
}

// placeOf is where the descriptions of the field f of o are.
func (o *object) placeOf(f *field) descriptionPlace {
	switch {
	case f.owner.Name() != "": // o, or an embedded struct
		return descriptionPlace{f.owner, f.sf.Name}
	case o.place.owner == nil:
		return descriptionPlace{}
	case o.place.path == "":
		return descriptionPlace{o.place.owner, f.sf.Name}
	}
	return descriptionPlace{o.place.owner, o.place.path + "." + f.sf.Name}
}

// finish computes what n needs its whole tree for, once for each object.
func (c *compiler) finish(n *node) {
	c.finishNode(n, map[*object]bool{})
}

func (c *compiler) finishNode(n *node, done map[*object]bool) {
	if n.key != nil {
		c.enums(n.key)
		n.key.want = wantOf(n.key)
	}
	if n.elem != nil {
		c.finishNode(n.elem, done)
	}
	if n.union != nil {
		for _, one := range n.union.cases {
			c.finishNode(one, done)
		}
	}
	if n.obj != nil && !done[n.obj] {
		done[n.obj] = true
		for _, f := range n.obj.fields {
			c.finishNode(f.node, done)
			c.describe(f)
		}
	}
	c.enums(n)
	n.want = wantOf(n)
	c.wide(n)
}

// wide completes the node of an integer of 64 bits, whose limits its schema does not say.
func (c *compiler) wide(n *node) {
	if n.shape != shapeInt && n.shape != shapeUint || n.t.Bits() < 64 || n.kw.Const != nil || len(n.kw.Enum) > 0 {
		return
	}
	limited := *n
	limited.kw = c.clone(n.kw)
	kw := limited.kw
	if n.shape == shapeInt {
		if kw.Minimum == "" && kw.ExclusiveMinimum == "" {
			kw.Minimum = json.Number(strconv.FormatInt(math.MinInt64, 10))
		}
		if kw.Maximum == "" && kw.ExclusiveMaximum == "" {
			kw.Maximum = json.Number(strconv.FormatInt(math.MaxInt64, 10))
		}
	} else if kw.Maximum == "" && kw.ExclusiveMaximum == "" {
		kw.Maximum = json.Number(strconv.FormatUint(math.MaxUint64, 10))
	}
	n.wide = wantOf(&limited)
}

// describe completes what callers see of f.
func (c *compiler) describe(f *field) {
	kw := f.node.kw
	if hasDeprecation(kw.Description) {
		kw.Deprecated = true
	}
	for _, note := range f.node.notes {
		kw.Description = strings.TrimSpace(kw.Description + " " + note)
	}
	f.node.notes = nil
	f.Description, f.Title = kw.Description, kw.Title
	for _, e := range kw.Enum {
		f.Enum = append(f.Enum, enumText(e))
	}
}

func enumText(e any) string {
	if s, ok := e.(string); ok {
		return s
	}
	return fmt.Sprint(e)
}

// hasDeprecation reports whether a paragraph of text begins as Go marks what is deprecated.
func hasDeprecation(text string) bool {
	for p := range strings.SplitSeq(text, "\n\n") {
		if strings.HasPrefix(strings.TrimSpace(p), "Deprecated: ") {
			return true
		}
	}
	return false
}

// enums describes the constants of a named type. They do not restrict it: what a program accepts must not hang on
// comments and sources being at hand, and constants are often units or well-known values rather than all there are.
// A oneof rule restricts; then the constants describe its values.
func (c *compiler) enums(n *node) {
	if c.o.Descriptions == nil || n.kw.Const != nil || n.t.PkgPath() == "" || n.t.Name() == "" {
		return
	}
	switch n.shape {
	case shapeString, shapeInt, shapeUint, shapeFloat, shapeBool:
	default:
		return
	}
	var lines []string
	var seen []any
	texts := false
	for _, e := range c.o.Descriptions.Enum(n.t) {
		v, ok := enumValue(n.shape, e.JSON)
		if !ok || slices.Contains(seen, v) || len(n.kw.Enum) > 0 && !slices.Contains(n.kw.Enum, v) {
			continue
		}
		seen = append(seen, v)
		line := e.JSON
		if e.Text != "" {
			texts = true
			line += ": " + oneLine(e.Text)
		}
		lines = append(lines, line)
	}
	// Values that a oneof lists already need no second list without texts.
	if len(lines) > 0 && (texts || len(n.kw.Enum) == 0) {
		n.kw.Description = strings.TrimSpace(n.kw.Description + "\n" + strings.Join(lines, "\n"))
	}
}

// enumValue returns the constant as a schema holds it, false where it is none of the shape.
func enumValue(s shape, text string) (any, bool) {
	raw := []byte(text)
	if !jsonx.Valid(raw) {
		return nil, false
	}
	switch k := jsonx.Kind(raw); {
	case s == shapeString && k == '"':
		return jsonx.String(raw), true
	case s == shapeBool && (k == 't' || k == 'f'):
		return k == 't', true
	case (s == shapeInt || s == shapeUint || s == shapeFloat) && k == '0':
		return json.Number(text), true
	}
	return nil, false
}

// oneLine joins the lines of a comment.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// durationText is what time.Duration.String writes. time.ParseDuration takes a little more, which would make the
// pattern in the schema twice as long.
var durationText = regexp.MustCompile(durationPattern)

const durationPattern = `^-?([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
