package reflectx

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

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
	found, _ := errors.AsType[validator.ValidationErrors](in.validate.StructCtx(ctx, v.Addr().Interface()))
	var wrong ArgumentError
	for _, e := range found {
		if violation, ok := in.judgeField(ctx, e, v, args, b); ok {
			wrong.add(violation)
		}
	}
	if len(wrong.Violations) == 0 {
		return nil
	}
	return in.failed(wrong)
}

// judgeField returns the violation of an error of the validator.
func (in *Input) judgeField(ctx context.Context, e validator.FieldError, v reflect.Value, args, b []byte) (Violation, bool) {
	at := locate(v, e.StructNamespace())
	if _, around, _, _ := in.root.at(at.pointer[:max(strings.LastIndexByte(at.pointer, '/'), 0)], args); around == nil || jsonx.Kind(around) == 'n' {
		return Violation{}, false // the object around it is absent
	}
	n, raw, _, secret := in.root.at(at.pointer, b)
	tag, param := e.Tag(), e.Param()
	rules := at.sf.Tag.Get("validate")
	own := strings.Contains(rules, tag)
	demands := strings.HasPrefix(tag, "required")
	present := raw != nil && (jsonx.Kind(raw) != 'n' || n.takes('n'))
	switch {
	case demands && present:
		if tag, param = in.rest(ctx, e, rules); tag == "" {
			return Violation{}, false
		}
	case own && !present && !demands && !strings.HasPrefix(tag, "excluded"):
		return Violation{}, false // a rule about a value that is not there
	}
	violation := Violation{Pointer: at.pointer, Got: n.got(raw, secret), Want: n.want}
	says, compares := fieldRules[tag]
	switch {
	case strings.HasPrefix(tag, "excluded_"):
		violation.Want = "none " + condition(at.parent, tag, param)
	case strings.HasPrefix(tag, "required_"):
		violation.Want += " " + condition(at.parent, tag, param)
	case compares && says != "":
		says = fmt.Sprintf(says, in.siblingText(at, param, b))
		violation.Want += " that must" + strings.TrimSuffix(strings.TrimPrefix(says, "Must"), ".")
	case !own || compares: // a rule of the struct, or one whose text is not in the schema
		violation.Want += " that satisfies " + strings.TrimSuffix(tag+"="+param, "=")
	}
	if violation.Got == "" && !demands { // the rule of a struct reports an absent member
		violation.Got = n.got([]byte(jsonText(e.Value())), secret)
	}
	return violation, true
}

// rest judges the rules after a `required`, at which the validator stops for a zero value. It
// returns the first that fails, or "".
func (in *Input) rest(ctx context.Context, e validator.FieldError, rules string) (tag, param string) {
	for text := range strings.SplitSeq(rules, ",") {
		r := parseRule(text)
		if r.tag == "dive" {
			break
		}
		if strings.HasPrefix(r.tag, "required") || strings.HasPrefix(r.tag, "omit") || strings.HasPrefix(r.tag, "excluded") || isCross(r.tag) {
			continue
		}
		failed := false
		if !panics(func() { failed = in.validate.VarCtx(ctx, e.Value(), text) != nil }) && failed {
			return r.tag, r.param
		}
	}
	return "", ""
}

// siblingText returns the name of the field that a rule compares with, and its value.
func (in *Input) siblingText(at location, param string, b []byte) string {
	sf, ok := at.parent.FieldByName(param)
	if !ok {
		return param
	}
	name := jsonFieldName(sf)
	parent := at.pointer[:strings.LastIndexByte(at.pointer, '/')]
	n, raw, _, secret := in.root.at(parent+"/"+string(appendPointer(nil, name)), b)
	if raw == nil {
		return name
	}
	return name + ", which is " + n.got(raw, secret)
}

// A location is the place that a validator's namespace refers to.
type location struct {
	pointer string
	sf      reflect.StructField
	parent  reflect.Type // of the struct with the field
}

// locate follows a validator's namespace, "Input.Addr.Items[0].Name", through the type of v.
func locate(v reflect.Value, namespace string) (at location) {
	t := v.Type()
	path := namespace
	if name := t.Name(); name != "" {
		path = strings.TrimPrefix(path, name+".")
	}
	for path != "" {
		part := path
		if i := strings.IndexAny(path, ".["); i >= 0 {
			part = path[:i]
		}
		path = path[len(part):]
		if t = indirectAll(t); t.Kind() != reflect.Struct {
			return at
		}
		sf, ok := t.FieldByName(part)
		if !ok {
			return at
		}
		at.sf, at.parent = sf, t
		t = indirectAll(sf.Type)
		if name, _, _ := strings.Cut(sf.Tag.Get("json"), ","); !sf.Anonymous || name != "" {
			at.pointer += "/" + string(appendPointer(nil, jsonFieldName(sf)))
		}
		for strings.HasPrefix(path, "[") {
			key, after, found := strings.Cut(path[1:], "]")
			if !found || t.Kind() != reflect.Slice && t.Kind() != reflect.Array && t.Kind() != reflect.Map {
				return at
			}
			at.pointer += "/" + string(appendPointer(nil, key))
			path, t = after, indirectAll(t.Elem())
		}
		path = strings.TrimPrefix(path, ".")
	}
	return at
}
