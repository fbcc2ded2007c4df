package reflectx

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"strconv"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// A decoder is the state of one pass over the bytes of the arguments. The readers compiled into the
// nodes move through d.b by index and add mistakes to violations. They do not stop at the first
// mistake.
type decoder struct {
	ctx        context.Context
	in         *Input
	b          []byte // valid JSON
	path       []step // from the root to the value being read
	violations []Violation
	more       int             // number of violations that are left out
	secret     int             // depth of secret fields around the value being read
	repair     bool            // accept values that are wrong but unambiguous
	missing    map[string]bool // pointers of absent members; only kept if a rule for the whole struct needs them
}

// A step is one part of a JSON pointer: a member name, or an index if name is nil.
type step struct {
	name  []byte
	index int
}

// violationLimit is the most violations that one call reports.
const violationLimit = 100

func (d *decoder) begin(ctx context.Context, in *Input, b []byte) {
	d.ctx, d.in, d.b, d.repair = ctx, in, b, in.repair
	d.path, d.violations, d.more, d.secret = d.path[:0], nil, 0, 0
	d.missing = nil
	if in.asks {
		d.missing = map[string]bool{}
	}
}

// end returns the error, and resets everything that belongs to the call.
func (d *decoder) end() error {
	violations, more, example, what := d.violations, d.more, d.in.example, d.in.what
	clear(d.path[:cap(d.path)])
	d.ctx, d.in, d.b, d.violations, d.missing = nil, nil, nil, nil, nil
	if len(violations) == 0 {
		return nil
	}
	return &ArgumentError{Violations: violations, Example: example, more: more, what: what}
}

func (d *decoder) push(name []byte) { d.path = append(d.path, step{name: name}) }
func (d *decoder) pushIndex(i int)  { d.path = append(d.path, step{index: i}) }
func (d *decoder) pop()             { d.path = d.path[:len(d.path)-1] }

// pointer returns the JSON pointer of the value being read.
func (d *decoder) pointer() string {
	var b []byte
	for _, s := range d.path {
		b = append(b, '/')
		if s.name == nil {
			b = strconv.AppendInt(b, int64(s.index), 10)
			continue
		}
		b = appendPointer(b, s.name)
	}
	return string(b)
}

// appendPointer escapes one part of a JSON pointer (RFC 6901 section 3).
func appendPointer[S string | []byte](dst []byte, name S) []byte {
	for i := 0; i < len(name); i++ {
		switch c := name[i]; c {
		case '~':
			dst = append(dst, "~0"...)
		case '/':
			dst = append(dst, "~1"...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// violate records that the value being read is wrong.
func (d *decoder) violate(got, want, hint string) {
	if len(d.violations) >= violationLimit {
		d.more++
		return
	}
	if d.secret > 0 && got != "" {
		got, hint = "***", ""
	}
	d.violations = append(d.violations, Violation{Pointer: d.pointer(), Got: got, Want: want, Hint: hint})
}

// wrong records that the value at i is not what n wants, and returns the index after it.
func (d *decoder) wrong(n *node, i int) int {
	end := jsonx.Skip(d.b, i)
	d.violate(shorten(d.b[i:end]), n.want, "")
	return end
}

// mend handles a value at i that is of the wrong kind for n. If allowed and unambiguous, it reads
// the JSON inside a string; otherwise it records a violation.
func (d *decoder) mend(n *node, i int, v reflect.Value) int {
	if !d.repair || d.b[i] != '"' {
		return d.wrong(n, i)
	}
	end := jsonx.Skip(d.b, i)
	inner := bytes.TrimSpace([]byte(jsonx.String(d.b[i:end])))
	if len(inner) == 0 || inner[0] == '"' || inner[0] == 'n' || !jsonx.Valid(inner) {
		return d.wrong(n, i)
	}
	outer, known, more := d.b, len(d.violations), d.more
	d.b, d.repair = inner, false
	n.readValue(d, n, 0, v)
	d.b, d.repair = outer, true
	if len(d.violations) == known && d.more == more {
		d.in.repaired(d.ctx)
	}
	return end
}

// readPointer allocates the targets of the pointers of n and reads the value into the last one.
func readPointer(d *decoder, n *node, i int, v reflect.Value) int {
	for range n.ptrs {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	return n.readValue(d, n, i, v)
}

// elements calls read with the index of each element of the array, or of the name of each member of
// the object, that begins at d.b[i]. read returns the index after the element. elements returns the
// index after the value.
func (d *decoder) elements(i int, read func(i int) int) int {
	closing := byte(']')
	if d.b[i] == '{' {
		closing = '}'
	}
	for i = jsonx.SkipSpace(d.b, i+1); i < len(d.b) && d.b[i] != closing; {
		i = jsonx.SkipSpace(d.b, read(i))
		if i < len(d.b) && d.b[i] == ',' {
			i = jsonx.SkipSpace(d.b, i+1)
		}
	}
	return min(i+1, len(d.b))
}

// name returns the raw name at i and the index of its value.
func (d *decoder) name(i int) (raw []byte, value int) {
	end := jsonx.Skip(d.b, i)
	colon := jsonx.SkipSpace(d.b, end)
	return d.b[i:end], jsonx.SkipSpace(d.b, colon+1)
}

// readStruct reads an object into a struct.
func readStruct(d *decoder, n *node, i int, v reflect.Value) int {
	if d.b[i] != '{' {
		return d.mend(n, i, v)
	}
	o, start := n.obj, i
	var seen, nulls presence
	next := 0
	end := d.elements(i, func(i int) int {
		raw, i := d.name(i)
		at := o.find(raw, &next)
		if at < 0 {
			return d.unknown(o, raw, i)
		}
		f := o.fields[at]
		if seen.has(at) {
			return d.again(f, i)
		}
		seen.add(at)
		if f.skipNull && d.b[i] == 'n' {
			nulls.add(at)
			return jsonx.Skip(d.b, i)
		}
		return d.field(f, i, v)
	})
	seen.remove(&nulls)
	if o.absent || d.missing != nil {
		d.absent(o, &seen, v)
	}
	d.finish(n, &seen, start, end, v)
	return end
}

// field reads the value at i into the field f of the struct v.
func (d *decoder) field(f *field, i int, v reflect.Value) int {
	d.enter(f)
	n := f.node
	if f.notNull && d.b[i] == 'n' {
		i = d.wrong(n, i)
	} else {
		i = n.read(d, n, i, f.of(v))
	}
	d.leave(f)
	return i
}

// enter makes f the place of violations until leave is called.
func (d *decoder) enter(f *field) {
	d.push(f.jsonName)
	if f.Secret {
		d.secret++
	}
}

func (d *decoder) leave(f *field) {
	if f.Secret {
		d.secret--
	}
	d.pop()
}

// unknown records a member that o does not have; i is the index of its value.
func (d *decoder) unknown(o *object, raw []byte, i int) int {
	name := jsonx.String(raw)
	end := jsonx.Skip(d.b, i)
	d.push([]byte(name))
	d.violate(shorten(d.b[i:end]), "", unknownHint(name, o.names))
	d.pop()
	return end
}

// again records a duplicate member. Duplicates are refused because two readers of the same bytes
// could choose different ones.
func (d *decoder) again(f *field, i int) int {
	d.enter(f)
	end := d.twice(i)
	d.leave(f)
	return end
}

// twice records that the name of the value at i is there already.
func (d *decoder) twice(i int) int {
	end := jsonx.Skip(d.b, i)
	d.violate(shorten(d.b[i:end])+" a second time", "the name only once", "")
	return end
}

// absent sets the defaults of absent members, and records those that are required.
func (d *decoder) absent(o *object, seen *presence, v reflect.Value) {
	for at, f := range o.fields {
		if seen.has(at) {
			continue
		}
		switch {
		case f.Required:
			d.push(f.jsonName)
			d.violate("", f.node.want, "")
			d.pop()
		case f.Default != nil:
			d.fill(f, v)
		case f.inner:
			d.fillAll(f.node.obj, f.of(v))
		case d.missing != nil:
			d.push(f.jsonName)
			d.missing[d.pointer()] = true
			d.pop()
		}
	}
}

// fill sets the field to its default. It decodes defaults that values cannot share.
func (d *decoder) fill(f *field, v reflect.Value) {
	if f.ready.IsValid() {
		f.of(v).Set(f.ready)
		return
	}
	outer, repair := d.b, d.repair
	d.b, d.repair = f.Default, false
	f.node.read(d, f.node, 0, f.of(v))
	d.b, d.repair = outer, repair
}

// fillAll sets the defaults inside an absent object that is a struct value in Go.
func (d *decoder) fillAll(o *object, v reflect.Value) {
	for _, f := range o.fields {
		switch {
		case f.Default != nil:
			d.fill(f, v)
		case f.inner:
			d.fillAll(f.node.obj, f.of(v))
		}
	}
}

// readSlice reads an array into a slice.
func readSlice(d *decoder, n *node, i int, v reflect.Value) int {
	if d.b[i] != '[' {
		return d.mend(n, i, v)
	}
	count := 0
	end := d.elements(i, func(i int) int {
		if count == v.Cap() {
			v.Grow(max(4, count))
		}
		v.SetLen(count + 1)
		count++
		return d.element(n.elem, i, count-1, v.Index(count-1))
	})
	if count == 0 {
		v.Set(reflect.MakeSlice(n.t, 0, 0))
	}
	d.check(n, i, end, v)
	return end
}

// element reads the element with the index at of an array.
func (d *decoder) element(n *node, i, at int, v reflect.Value) int {
	d.pushIndex(at)
	i = n.read(d, n, i, v)
	d.pop()
	return i
}

// readArray reads an array into a Go array, whose length must match.
func readArray(d *decoder, n *node, i int, v reflect.Value) int {
	if d.b[i] != '[' {
		return d.mend(n, i, v)
	}
	count := 0
	end := d.elements(i, func(i int) int {
		if count++; count > v.Len() {
			return jsonx.Skip(d.b, i)
		}
		return d.element(n.elem, i, count-1, v.Index(count-1))
	})
	if count != v.Len() {
		d.violate(shorten(d.b[i:end]), n.want, "")
		return end
	}
	d.check(n, i, end, v)
	return end
}

// readMap reads an object into a map.
func readMap(d *decoder, n *node, i int, v reflect.Value) int {
	if d.b[i] != '{' {
		return d.mend(n, i, v)
	}
	m := reflect.MakeMap(n.t)
	end := d.elements(i, func(i int) int { return d.entry(n, m, i) })
	v.Set(m)
	d.check(n, i, end, v)
	return end
}

// entry reads the member of a map whose name is at nameAt.
func (d *decoder) entry(n *node, m reflect.Value, nameAt int) int {
	raw, i := d.name(nameAt)
	d.push([]byte(jsonx.String(raw)))
	defer d.pop()
	key := reflect.New(n.t.Key()).Elem()
	known := len(d.violations) + d.more
	n.key.read(d, n.key, nameAt, key)
	switch {
	case len(d.violations)+d.more != known:
		return jsonx.Skip(d.b, i)
	case m.MapIndex(key).IsValid():
		return d.twice(i)
	}
	elem := reflect.New(n.t.Elem()).Elem()
	i = n.elem.read(d, n.elem, i, elem)
	m.SetMapIndex(key, elem)
	return i
}

// check checks the rules for the value v, which was read from start to end.
func (d *decoder) check(n *node, start, end int, v reflect.Value) {
	for _, ok := range n.checks {
		if !ok(d.ctx, v) {
			d.violate(shorten(d.b[start:end]), n.want, "")
			return
		}
	}
}

// presence records which fields of an object are present.
type presence struct {
	low  uint64
	high []uint64 // beyond 64 fields
}

func (p *presence) has(i int) bool {
	if i < 64 {
		return p.low&(1<<i) != 0
	}
	word := i/64 - 1
	return word < len(p.high) && p.high[word]&(1<<(i%64)) != 0
}

func (p *presence) add(i int) {
	if i < 64 {
		p.low |= 1 << i
		return
	}
	word := i/64 - 1
	for len(p.high) <= word {
		p.high = append(p.high, 0)
	}
	p.high[word] |= 1 << (i % 64)
}

func (p *presence) remove(other *presence) {
	p.low &^= other.low
	for i, bits := range other.high {
		p.high[i] &^= bits
	}
}

// find returns the index of the field for the raw member name, or -1. next is the expected field if
// the members have the order of the schema, as they usually do.
func (o *object) find(raw []byte, next *int) int {
	name := raw[1 : len(raw)-1]
	if fast && *next < len(o.fields) && string(name) == o.fields[*next].Name {
		*next++
		return *next - 1
	}
	if bytes.IndexByte(name, '\\') >= 0 {
		name = []byte(jsonx.String(raw))
	}
	at := -1
	if o.index == nil {
		at = slices.Index(o.names, string(name))
	} else if i, ok := o.index[string(name)]; ok {
		at = i
	}
	*next = at + 1
	return at
}

// of returns the field of the struct v. It allocates embedded structs behind pointers on the way.
func (f *field) of(v reflect.Value) reflect.Value {
	if len(f.Index) == 1 {
		return v.Field(f.Index[0])
	}
	for i, at := range f.Index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(at)
	}
	return v
}
