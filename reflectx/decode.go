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

// readStruct reads an object into a struct.
func readStruct(d *decoder, n *node, i int, v reflect.Value) int {
	if d.b[i] != '{' {
		return d.mend(n, i, v)
	}
	o, start := n.obj, i
	var seen, nulls presence
	next := 0
	for i++; ; {
		i = jsonx.SkipSpace(d.b, i)
		if i >= len(d.b) || d.b[i] == '}' {
			i++
			break
		}
		end := jsonx.Skip(d.b, i)
		raw := d.b[i:end]
		i = jsonx.SkipSpace(d.b, end)
		i = jsonx.SkipSpace(d.b, i+1) // the colon
		at := o.find(raw, &next)
		switch {
		case at < 0:
			i = d.unknown(o, raw, i)
		case seen.has(at):
			i = d.again(o.fields[at], i)
		default:
			seen.add(at)
			f := o.fields[at]
			if f.skipNull && d.b[i] == 'n' {
				nulls.add(at)
				i = jsonx.Skip(d.b, i)
				break
			}
			d.push(f.jsonName)
			i = d.field(f, i, v)
			d.pop()
		}
		i = jsonx.SkipSpace(d.b, i)
		if i < len(d.b) && d.b[i] == ',' {
			i++
		}
	}
	seen.remove(&nulls)
	if o.absent || d.missing != nil {
		d.absent(o, &seen, v)
	}
	d.finish(n, &seen, start, min(i, len(d.b)), v)
	return i
}

// field reads the value at i into the field f of the struct v.
func (d *decoder) field(f *field, i int, v reflect.Value) int {
	if f.Secret {
		d.secret++
	}
	n := f.node
	if f.notNull && d.b[i] == 'n' {
		i = d.wrong(n, i)
	} else {
		i = n.read(d, n, i, f.of(v))
	}
	if f.Secret {
		d.secret--
	}
	return i
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
	end := jsonx.Skip(d.b, i)
	d.push(f.jsonName)
	if f.Secret {
		d.secret++
	}
	d.violate(shorten(d.b[i:end])+" a second time", "the name only once", "")
	if f.Secret {
		d.secret--
	}
	d.pop()
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
	start := i
	if strs := n.stringSlice(v); strs != nil {
		return d.strings(n, i, strs, v)
	}
	count := 0
	out := reflect.MakeSlice(n.t, 0, 0)
	for i++; ; count++ {
		i = jsonx.SkipSpace(d.b, i)
		if i >= len(d.b) || d.b[i] == ']' {
			i++
			break
		}
		if count == out.Cap() {
			grown := reflect.MakeSlice(n.t, count, max(4, 2*count))
			reflect.Copy(grown, out)
			out = grown
		}
		out = out.Slice(0, count+1)
		d.pushIndex(count)
		i = n.elem.read(d, n.elem, i, out.Index(count))
		d.pop()
		i = jsonx.SkipSpace(d.b, i)
		if i < len(d.b) && d.b[i] == ',' {
			i++
		}
	}
	v.Set(out)
	d.check(n, start, min(i, len(d.b)), v)
	return i
}

// strings is readSlice for []string, the most common slice type.
func (d *decoder) strings(n *node, i int, strs *[]string, v reflect.Value) int {
	start := i
	out := make([]string, 0, 4)
	for i++; ; {
		i = jsonx.SkipSpace(d.b, i)
		if i >= len(d.b) || d.b[i] == ']' {
			i++
			break
		}
		end := jsonx.Skip(d.b, i)
		d.pushIndex(len(out))
		if d.b[i] == '"' {
			s := jsonx.String(d.b[i:end])
			out = append(out, s)
			d.text(n.elem, i, end, s, reflect.ValueOf(&out[len(out)-1]).Elem())
		} else {
			out = append(out, "")
			d.wrong(n.elem, i)
		}
		d.pop()
		i = jsonx.SkipSpace(d.b, end)
		if i < len(d.b) && d.b[i] == ',' {
			i++
		}
	}
	*strs = out
	d.check(n, start, min(i, len(d.b)), v)
	return i
}

// readArray reads an array into a Go array, whose length must match.
func readArray(d *decoder, n *node, i int, v reflect.Value) int {
	if d.b[i] != '[' {
		return d.mend(n, i, v)
	}
	start, count := i, 0
	for i++; ; count++ {
		i = jsonx.SkipSpace(d.b, i)
		if i >= len(d.b) || d.b[i] == ']' {
			i++
			break
		}
		if count < v.Len() {
			d.pushIndex(count)
			i = n.elem.read(d, n.elem, i, v.Index(count))
			d.pop()
		} else {
			i = jsonx.Skip(d.b, i)
		}
		i = jsonx.SkipSpace(d.b, i)
		if i < len(d.b) && d.b[i] == ',' {
			i++
		}
	}
	end := min(i, len(d.b))
	if count != v.Len() {
		d.violate(shorten(d.b[start:end]), n.want, "")
		return i
	}
	d.check(n, start, end, v)
	return i
}

// readMap reads an object into a map.
func readMap(d *decoder, n *node, i int, v reflect.Value) int {
	if d.b[i] != '{' {
		return d.mend(n, i, v)
	}
	start, count := i, 0
	m := reflect.MakeMap(n.t)
	for i++; ; count++ {
		i = jsonx.SkipSpace(d.b, i)
		if i >= len(d.b) || d.b[i] == '}' {
			i++
			break
		}
		end := jsonx.Skip(d.b, i)
		raw := d.b[i:end]
		at := i
		i = jsonx.SkipSpace(d.b, end)
		i = jsonx.SkipSpace(d.b, i+1) // the colon
		i = d.entry(n, m, at, raw, i)
		i = jsonx.SkipSpace(d.b, i)
		if i < len(d.b) && d.b[i] == ',' {
			i++
		}
	}
	v.Set(m)
	d.check(n, start, min(i, len(d.b)), v)
	return i
}

// entry reads one member of a map: its name is at nameAt, its value at i.
func (d *decoder) entry(n *node, m reflect.Value, nameAt int, raw []byte, i int) int {
	d.push([]byte(jsonx.String(raw)))
	defer d.pop()
	key := reflect.New(n.t.Key()).Elem()
	known := len(d.violations) + d.more
	n.key.read(d, n.key, nameAt, key)
	if len(d.violations)+d.more != known {
		return jsonx.Skip(d.b, i)
	}
	if m.MapIndex(key).IsValid() {
		end := jsonx.Skip(d.b, i)
		d.violate(shorten(d.b[i:end])+" a second time", "the name only once", "")
		return end
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
