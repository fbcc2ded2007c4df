package reflectx

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-playground/validator/v10"
	"github.com/invopop/jsonschema"
)

// A spec is a node during compilation, with the schema and the description of its place. [Input]
// only keeps the nodes.
type spec struct {
	*node
	elem *spec // of slice, array and map
	key  *spec // of a map

	kw      *jsonschema.Schema // the keywords of this place, without children
	phrases []string           // what violations say beyond the keywords: `starting with "a"`
	notes   []string           // sentences for the description, for rules without a keyword

	nullOK bool // null is an allowed value
	isKey  bool // the key of a map
	own    bool // the schema comes from the type's method JSONSchema
	there  bool // in an output: never nil

	// keep and keepTexts are the number of checks and texts that calls use, or -1 for all. The
	// program's own validator checks the others during calls; they only serve to check defaults and
	// examples.
	keep, keepTexts int

	room node // the node of an output, which is not kept
}

// A fieldSpec is the part of a field that only the compiler needs.
type fieldSpec struct {
	spec     *spec
	sf       *reflect.StructField // nil for a discriminator
	rules    []rule               // of its own validate tag, before dive
	example  json.RawMessage
	mayOmit  bool // the encoder may leave it out
	omitsNil bool // the encoder leaves it out if it is nil
	faulty   bool // its tags or its type have a mistake, so its values are not checked
	optional bool // the validate tag says that it may be absent
}

type direction bool

const (
	forInput  direction = false
	forOutput direction = true
)

// A compiler compiles nodes. It collects all mistakes instead of stopping at the first.
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
	specs    []*spec
	schemas  []*jsonschema.Schema
	spans    []span       // of the objects in the schema
	kept     []keptObject // for the Memo
}

func newCompiler(site string, o InputOptions, dir direction) *compiler {
	c := &compiler{site: site, o: o, dir: dir, validate: o.Validate, objects: map[objectKey]*object{}, place: descriptionPlace{o.Owner, o.Method}}
	if c.validate == nil {
		c.validate = defaultValidate()
	}
	return c
}

// errorf records a mistake at the field being compiled.
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
	root := c.spec(t, nil)
	in.root = root.node
	c.finish(root)
	in.own = c.o.Validate != nil
	in.asks = c.asksAll || in.own
	if in.asks {
		c.needsDive(in.root)
	}
	c.probeAll(t)
	c.contradictions(in.root)
	c.defaults(in)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	in.schema = c.publish(root)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	in.makeExample(root)
	c.remember(in.schema)
	in.root.release(root, map[*object]bool{})
	c.keep()
	return in, nil
}

// release lets go of what only compiling needs.
func (n *node) release(from *spec, done map[*object]bool) {
	if from.keep >= 0 {
		n.checks, n.texts = n.checks[:from.keep:from.keep], n.texts[:from.keepTexts:from.keepTexts]
	}
	if from.key != nil {
		n.key.release(from.key, done)
	}
	if from.elem != nil {
		n.elem.release(from.elem, done)
	}
	for _, o := range n.objects() {
		if done[o] || o.known != nil {
			continue
		}
		done[o] = true
		for _, f := range o.fields {
			f.node.release(f.spec, done)
			f.fieldSpec = nil
		}
	}
	if n.union != nil {
		n.union.specs = nil
	}
}

// list returns the fields of o for [Input.Fields].
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

// spec compiles t. kw are the keywords that its place already has, or nil if there is only the
// type.
func (c *compiler) spec(t reflect.Type, kw *jsonschema.Schema) *spec {
	n := c.newSpec()
	if c.endless(t) {
		n.t, n.kw = t, &jsonschema.Schema{}
		return n
	}
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
		kw.Description = own.Description // the tags have overwritten the description of the type
		fallthrough
	default:
		n.kw = kw
	}
	n.nullOK = n.shape == shapeAny || n.shape == shapeRaw || n.shape == shapeCustom && n.kw.Type == ""
	switch n.shape {
	case shapeSlice, shapeArray:
		var items *jsonschema.Schema
		if kw != nil && !n.own {
			items, kw.Items = kw.Items, nil // written from the element's spec
		}
		n.setElem(c.spec(t.Elem(), items))
	case shapeMap:
		n.setElem(c.spec(t.Elem(), nil))
		n.key = c.keySpec(t)
		n.node.key = n.key.node
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

// endless reports, as a mistake, that t contains itself without a struct, as type List []List does. A
// schema has no name for such a type.
func (c *compiler) endless(t reflect.Type) bool {
	var above []reflect.Type // with names, since a type without one cannot contain itself
	for {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		default:
			return false
		}
		if t.Name() != "" {
			if slices.Contains(above, t) {
				c.errorf("the type %s contains itself; put it into a field of a struct, and let the struct contain itself", typeText(t))
				return true
			}
			above = append(above, t)
		}
		if t.Kind() != reflect.Pointer && ownJSON(t, c.dir) != "" {
			return false
		}
		t = t.Elem()
	}
}

func (n *spec) setElem(elem *spec) { n.elem, n.node.elem = elem, elem.node }

// keySpec compiles the key type of the map type t.
func (c *compiler) keySpec(t reflect.Type) *spec {
	k := t.Key()
	n := c.newSpec()
	n.t, n.isKey = k, true
	s, _ := c.shapeOf(k)
	if s == shapeNumber {
		s = shapeString // names are text
	}
	switch s {
	case shapeString, shapeText:
		n.shape, n.kw, n.read = s, &jsonschema.Schema{}, readers[s]
	case shapeInt, shapeUint:
		n.shape, n.kw, n.read = s, &jsonschema.Schema{Pattern: "^(0|[1-9][0-9]*)$"}, readKey
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

// An objectKey identifies an object of a compiler: a struct type and, for a case of a union, that
// case.
type objectKey struct {
	t                   reflect.Type
	discriminator, name string
	place               descriptionPlace // of a struct without a name
}

// A descriptionPlace is the place of a struct without a name: the type owner and the path to the
// field in it.
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
		if o.compiling {
			o.recursive = true
		}
		return o
	}
	if key.discriminator == "" && key.t.Name() != "" {
		if o := c.recall(key.t); o != nil {
			c.objects[key] = o
			return o
		}
	}
	o := &object{t: key.t, place: at, compiling: true}
	c.objects[key] = o
	members := c.members(key.t)
	fields, specs := make([]field, len(members)), make([]fieldSpec, len(members))
	o.fields, o.names = make([]*field, 0, len(members)+1), make([]string, 0, len(members)+1)
	if key.discriminator != "" {
		o.fields, o.names, o.absent = append(o.fields, c.discriminatorField(key)), append(o.names, key.discriminator), true
	}
	size := 0
	for i := range members {
		size += len(members[i].name)
	}
	jsonNames := make([]byte, 0, size)
	for i := range members {
		m, f := &members[i], &fields[i]
		jsonNames = append(jsonNames, m.name...)
		specs[i] = fieldSpec{sf: &m.sf, mayOmit: m.mayOmit || m.behind, omitsNil: m.mayOmit}
		*f = field{fieldSpec: &specs[i], owner: m.owner, validate: m.sf.Tag.Get("validate"), jsonName: jsonNames[len(jsonNames)-len(m.name):]}
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
	if slices.ContainsFunc(o.fields, func(f *field) (endless bool) {
		if f.sf != nil {
			c.enter(f, func() { endless = c.endless(f.Type) })
		}
		return endless
	}) {
		o.fields, o.names, o.compiling = nil, nil, false
		return o
	}
	props := c.reflectFields(o)
	for _, f := range o.fields {
		if f.sf != nil { // not for the discriminator
			c.enter(f, func() { c.field(o, f, props[f.Name]) })
		}
	}
	for _, f := range o.fields {
		c.enter(f, func() { c.memberRules(o, f) })
	}
	o.compiling = false
	return o
}

// fewFields is the most fields that are faster to search one by one.
const fewFields = 8

// enter runs fn with f as the place of errors.
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

// field compiles one member: its type, then its tags. props are the keywords that
// invopop/jsonschema read from the tags.
func (c *compiler) field(o *object, f *field, props *jsonschema.Schema) {
	outer := c.place
	c.place = o.placeOf(f)
	f.spec = c.spec(f.Type, props)
	f.node = f.spec.node
	c.place = outer
	c.tagKeys(f)
	n := f.spec
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
	if c.dir == forInput { // results are not validated, so their schema must not promise the rules
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

// presence decides whether the member is required. It is, unless something makes it optional.
func (c *compiler) presence(f *field) {
	n := f.spec
	if c.o.Form && n.shape == shapeBool && n.ptrs == 0 && f.Default == nil && n.accepts(json.RawMessage("false")) {
		f.Default = json.RawMessage("false") // an unchecked box
	}
	optional := f.mayOmit || f.optional || n.ptrs > 0 || f.Default != nil || len(f.rules) > 0
	f.Required = f.Required || !optional
	f.skipNull = !f.Required && !n.nullOK
}

// placeOf returns the place of the descriptions of the field f of o.
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
