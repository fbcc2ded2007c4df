package reflectx

import (
	"encoding/json"
	"reflect"
	"sync"
)

// A Memo remembers the struct types that were compiled, for inputs and outputs that are compiled with
// the same descriptions and unions: the functions of a server often share types. The zero value is
// empty. It is safe for concurrent use.
type Memo struct {
	mu    sync.Mutex
	known map[memoKey]*object // guarded by mu
}

type memoKey struct {
	t   reflect.Type
	dir direction
}

// A knownObject is what the compiler needs of an object in a Memo. The object never changes.
type knownObject struct {
	schema  []byte          // what schemaWriter.object writes
	example json.RawMessage // nil if there is none
}

// A span is the place of an object in the schema that was written.
type span struct {
	obj        *object
	start, end int
}

// memo returns the Memo of c, or nil if its objects depend on other options.
func (c *compiler) memo() *Memo {
	if !fast || c.o.NoSchema || c.o.Form || c.o.Validate != nil {
		return nil
	}
	return c.o.Memo
}

// recall returns the object of the named struct type t if it is known, or nil.
func (c *compiler) recall(t reflect.Type) *object {
	m := c.memo()
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[memoKey{t, c.dir}]
}

// remember keeps the objects that c has written into the schema and that another compiler can use.
// It is called before c lets go of their specs; c has no errors.
func (c *compiler) remember(schema json.RawMessage) {
	m := c.memo()
	if m == nil || c.asksAll {
		return
	}
	for _, s := range c.spans {
		o := s.obj
		if o.known != nil || o.t.Name() == "" || !o.standsAlone() {
			continue
		}
		kept := o
		k := &knownObject{schema: schema[s.start:s.end:s.end]}
		if c.dir == forInput {
			k.example, _ = exampleObject(o, map[*object]bool{})
		} else {
			kept = &object{t: o.t} // the nodes of outputs are used again
		}
		c.kept = append(c.kept, keptObject{kept, k})
	}
}

// A keptObject is an object that becomes known when its compiler is done.
type keptObject struct {
	obj   *object
	known *knownObject
}

// keep makes the remembered objects known. Nothing changes them afterwards.
func (c *compiler) keep() {
	m := c.memo()
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range c.kept {
		k.obj.known = k.known
		key := memoKey{k.obj.t, c.dir}
		if m.known == nil {
			m.known = map[memoKey]*object{}
		}
		if m.known[key] == nil {
			m.known[key] = k.obj
		}
	}
}

// standsAlone reports whether o is the same wherever its type is used: it has no unions, headers,
// types that contain themselves, or rules about several members.
func (o *object) standsAlone() bool {
	if o.known != nil {
		return true
	}
	if o.recursive || len(o.rules) > 0 {
		return false
	}
	for _, f := range o.fields {
		n := f.spec
		for n.elem != nil {
			n = n.elem
		}
		if f.sf == nil || f.Header != "" || n.union != nil || n.obj != nil && !n.obj.standsAlone() {
			return false
		}
	}
	return true
}
