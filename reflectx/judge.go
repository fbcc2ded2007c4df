package reflectx

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"github.com/go-playground/validator/v10"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// judge passes a decoded value to the validator, for the rules that a schema cannot express: those
// that compare fields, rules of the program, and the finer points of formats. b is the JSON of v,
// which the schema accepts; args is the same without defaults.
//
// Where the validator looks at zero values, presence in the JSON counts: an absent member satisfies
// all rules but those about presence, and a present one satisfies `required`.
func (in *Input) judge(ctx context.Context, v reflect.Value, args, b []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reflectx: the validator of %s panics: %v", in.t, p)
		}
	}()
	found, _ := errors.AsType[validator.ValidationErrors](in.o.Validate.StructCtx(ctx, v.Addr().Interface()))
	var wrong ArgumentError
	for _, e := range found {
		if violation, ok := in.judgeField(ctx, e, args, b); ok {
			wrong.add(violation)
		}
	}
	if len(wrong.Violations) == 0 {
		return nil
	}
	return in.failed(wrong)
}

// judgeField returns the violation of an error of the validator.
func (in *Input) judgeField(ctx context.Context, e validator.FieldError, args, b []byte) (Violation, bool) {
	at := locate(in.t, e.StructNamespace())
	outer := at.pointer[:max(strings.LastIndexByte(at.pointer, '/'), 0)]
	if _, object, _, _ := in.root.at(outer, args); object == nil || jsonx.Kind(object) == 'n' {
		return Violation{}, false // the object around it is absent
	}
	n, raw, pointer, secret := in.root.at(at.pointer, b)
	r := parseRule(strings.TrimSuffix(e.Tag()+"="+e.Param(), "="))
	if n.null && jsonx.Kind(raw) == 'n' && !r.conditional() {
		return Violation{}, false // rules are about the value
	}
	rules := at.sf.Tag.Get("validate")
	demands := strings.HasPrefix(r.tag, "required")
	present := raw != nil && (jsonx.Kind(raw) != 'n' || n.takes('n'))
	if demands && present {
		if r = in.rest(ctx, e, rules); r.tag == "" {
			return Violation{}, false
		}
	} else if !present && strings.Contains(rules, r.tag) && !r.conditional() {
		return Violation{}, false // a rule about a value that is not there
	}
	says := r.says(at.parent, n.t)
	want := n.want + "; " + strings.ToLower(says[:1]) + says[1:]
	violation := Violation{Pointer: pointer, Got: n.got(raw, secret), Want: want}
	if violation.Got == "" && !demands { // the rule of a struct reports an absent member
		violation.Got = n.got([]byte(jsonText(e.Value())), secret)
	}
	return violation, true
}

// rest judges the rules after a `required`, at which the validator stops for a zero value. It
// returns the first that fails.
func (in *Input) rest(ctx context.Context, e validator.FieldError, rules string) rule {
	before, _, _ := strings.Cut(rules, ",dive")
	for text := range strings.SplitSeq(before, ",") {
		r := parseRule(text)
		isPresence := strings.HasPrefix(r.tag, "required") || strings.HasPrefix(r.tag, "omit") || r.conditional()
		if isPresence || r.fieldRule() != "" {
			continue
		}
		failed := false
		if !panics(func() { failed = in.o.Validate.VarCtx(ctx, e.Value(), text) != nil }) && failed {
			return r
		}
	}
	return rule{}
}

// A location is the place that a validator's namespace refers to.
type location struct {
	pointer string
	sf      reflect.StructField
	parent  reflect.Type // of the struct with the field
}

// namespaceParts are the names of fields in a validator's namespace, and the keys and indexes in
// brackets.
var namespaceParts = regexp.MustCompile(`\[[^\]]*\]|[^.\[]+`)

// locate follows a validator's namespace, "Input.Addr.Items[0].Name", through the type t.
func locate(t reflect.Type, namespace string) (at location) {
	path := namespace
	if name := t.Name(); name != "" {
		path = strings.TrimPrefix(path, name+".")
	}
	for _, part := range namespaceParts.FindAllString(path, -1) {
		t = indirectAll(t)
		if key, ok := strings.CutPrefix(part, "["); ok {
			at.pointer += pointerTo([]string{strings.TrimSuffix(key, "]")})
			t = t.Elem()
			continue
		}
		sf, ok := fieldOf(t, part)
		if !ok {
			return at
		}
		at.sf, at.parent = sf, t
		t = sf.Type
		if name, _, _ := strings.Cut(sf.Tag.Get("json"), ","); !sf.Anonymous || name != "" {
			at.pointer += pointerTo([]string{jsonFieldName(sf)})
		}
	}
	return at
}

// defaultValidate returns the validator of inputs whose options have none.
var defaultValidate = sync.OnceValue(func() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(jsonFieldName)
	if err := RegisterRules(v); err != nil {
		panic(err) // only if the name of a rule is wrong
	}
	return v
})

// jsonFieldName makes the validator use the JSON names of fields.
func jsonFieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" || name == "-" {
		return f.Name
	}
	return name
}

// RegisterRules registers the rule of this package that validator/v10 does not have: enum, which the
// schema checks. Call it before v is used. A nil v is allowed.
func RegisterRules(v *validator.Validate) error {
	if v == nil {
		return nil
	}
	return v.RegisterValidation("enum", func(validator.FieldLevel) bool { return true })
}

// judgeOnce passes a populated value to the validator, which parses the tags of all fields and runs
// their rules, so that a rule that panics is found when the type is registered.
func (c *compiler) judgeOnce(t reflect.Type) {
	v := reflect.New(t)
	populate(v.Elem(), 0)
	defer func() {
		if p := recover(); p != nil {
			c.errorf("the validator does not take %s: %v", typeText(t), p)
		}
	}()
	_ = c.o.Validate.StructCtx(context.Background(), v.Interface())
}

// populate fills v with values other than zero: one element in each slice and map, and a target for
// each pointer. depth ends types that contain themselves.
func populate(v reflect.Value, depth int) {
	made := func(t reflect.Type) reflect.Value {
		target := reflect.New(t)
		populate(target.Elem(), depth+1)
		return target
	}
	switch kind := v.Kind(); {
	case depth > 8 || !v.CanSet():
	case kind == reflect.Pointer:
		v.Set(made(v.Type().Elem()))
	case kind == reflect.Slice:
		v.Set(reflect.Append(v, made(v.Type().Elem()).Elem()))
	case kind == reflect.Array && v.Len() > 0:
		populate(v.Index(0), depth+1)
	case kind == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(made(v.Type().Key()).Elem(), made(v.Type().Elem()).Elem())
	case kind == reflect.Struct:
		for i := range v.NumField() {
			populate(v.Field(i), depth+1)
		}
	case kind == reflect.Interface && v.NumMethod() == 0:
		v.Set(reflect.ValueOf("a"))
	case kind == reflect.String:
		v.SetString("a")
	case kind == reflect.Bool:
		v.SetBool(true)
	case v.CanInt(), v.CanUint(), v.CanFloat():
		v.Set(reflect.ValueOf(1).Convert(v.Type()))
	}
}
