package reflectx

import (
	"context"
	"reflect"
)

// A node decodes and checks the values of a type at one place. It has no schema and no description;
// see [spec] for those.
type node struct {
	t     reflect.Type // without the pointers
	ptrs  int          // how many pointers lead to it
	shape shape

	read      reader // including the pointers
	readValue reader // without the pointers

	elem  *node   // of slice, array and map
	key   *node   // of a map
	obj   *object // of a struct
	union *union

	texts  []func(string) bool // rules for the text of a string, checked before it is decoded
	checks []check             // rules for the value

	want     string // the allowed values, for violations
	wantWide string // want with the limits of a 64-bit type
}

// A reader reads the value at d.b[i] into v and returns the index after the value.
type reader func(d *decoder, n *node, i int, v reflect.Value) int

// A check reports whether the decoded value v satisfies a rule.
type check func(ctx context.Context, v reflect.Value) bool

// An object is a struct type. All places with the type share it.
type object struct {
	t         reflect.Type
	place     descriptionPlace
	fields    []*field
	names     []string
	index     map[string]int // nil if there are few fields
	absent    bool           // an absent member means something: a default, or a violation
	rules     []memberRule
	known     *knownObject // nil if no other compiler can use the object
	compiling bool
	recursive bool
}

// A field is a member of an object.
type field struct {
	Field
	*fieldSpec // nil once compiled

	jsonName []byte
	node     *node
	ready    reflect.Value // the default, if values can share it
	owner    reflect.Type  // the struct that declares it
	validate string        // the tag
	inner    bool          // a struct by value with defaults in it
	notNull  bool          // explicitly required, so null does not count even if the type allows it
	skipNull bool          // null counts as absent
}

// readers are indexed by shape. They are set in init because they refer to each other through
// nodes.
var readers [shapeUnion + 1]reader

func init() {
	readers = [...]reader{
		shapeAny: readAny, shapeRaw: readRaw, shapeCustom: readCustom, shapeBool: readBool,
		shapeInt: readsNumber(setInt), shapeUint: readsNumber(setUint), shapeFloat: readsNumber(setFloat),
		shapeBig: readsNumber(setBig), shapeNumber: readsNumber(setNumber),
		shapeString: readsText(setString), shapeBytes: readsText(setBytes), shapeTime: readsText(setTime),
		shapeDuration: readsText(setDuration), shapeURL: readsText(setURL), shapeText: readsText(setText),
		shapeSlice: readSlice, shapeArray: readArray, shapeMap: readMap, shapeStruct: readStruct, shapeUnion: readUnion,
	}
}

// readKey reads the name of a member into an integer key of a map.
var readKey = readsText(setKey)
