package reflectx_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-playground/validator/v10"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

type figure interface{ Area() float64 }

type circle struct {
	Radius float64 `json:"radius" validate:"required,gt=0"`
}

type square struct {
	Side  float64 `json:"side" validate:"required,min=0.5"`
	Label string  `json:"label" validate:"max=5" default:"box"`
}

// group contains itself.
type group struct {
	Name    string   `json:"name" validate:"required"`
	Members []figure `json:"members" validate:"omitempty,max=3"`
}

func (circle) Area() float64 { return 0 }
func (square) Area() float64 { return 0 }
func (*group) Area() float64 { return 0 }

// drawing has a union everywhere.
type drawing struct {
	Main  figure            `json:"main" validate:"required"`
	Extra figure            `json:"extra,omitempty"`
	More  []figure          `json:"more,omitempty" validate:"max=3"`
	Named map[string]figure `json:"named,omitempty"`
	Plain *circle           `json:"plain,omitempty"`
}

func figures(t testing.TB) map[reflect.Type]*reflectx.Union {
	t.Helper()
	u, err := reflectx.NewUnion("Figure", reflect.TypeFor[figure](), "kind", []reflectx.UnionCase{
		{Type: reflect.TypeFor[circle]()}, {Name: "box", Type: reflect.TypeFor[square]()}, {Type: reflect.TypeFor[*group]()},
	})
	require.NoError(t, err)
	return map[reflect.Type]*reflectx.Union{u.Interface: u}
}

func newDrawing(t testing.TB) *reflectx.Input {
	t.Helper()
	in, err := reflectx.NewInput("T", reflect.TypeFor[drawing](), reflectx.InputOptions{Unions: figures(t)})
	require.NoError(t, err)
	return in
}

const (
	circleSchema = `{"type":"object","properties":{"kind":{"type":"string","const":"circle"},"radius":{"type":"number","exclusiveMinimum":0}},` +
		`"required":["kind","radius"],"additionalProperties":false}`
	squareSchema = `{"type":"object","properties":{"kind":{"type":"string","const":"box"},"side":{"type":"number","minimum":0.5},` +
		`"label":{"type":"string","maxLength":5,"default":"box"}},"required":["kind","side"],"additionalProperties":false}`
	figureSchema = `{"type":"object","properties":{"kind":{"type":"string","enum":["circle","box","group"]}},"required":["kind"],` +
		`"anyOf":[` + circleSchema + `,` + squareSchema + `,{"$ref":"#/$defs/reflectx_test.group"}]}`
	// group is in $defs, since it contains itself.
	groupSchema = `{"type":"object","properties":{"kind":{"type":"string","const":"group"},"name":{"type":"string"},` +
		`"members":{"type":"array","maxItems":3,"items":` + figureSchema + `}},"required":["kind","name"],"additionalProperties":false}`
)

func TestUnionSchema(t *testing.T) {
	in := newDrawing(t)
	require.JSONEq(t, `{"type":"object","properties":{"main":`+figureSchema+`,"extra":`+figureSchema+`,
		"more":{"type":"array","maxItems":3,"items":`+figureSchema+`},
		"named":{"type":"object","properties":{},"additionalProperties":`+figureSchema+`},
		"plain":{"type":"object","properties":{"radius":{"type":"number","exclusiveMinimum":0}},"required":["radius"],"additionalProperties":false}},
		"required":["main"],"additionalProperties":false,"$defs":{"reflectx_test.group":`+groupSchema+`}}`, string(in.Schema()))
	require.JSONEq(t, `{"main":{"kind":"circle","radius":1}}`, string(in.Example()))
	compileSchema(t, in.Schema())
}

func TestUnionDecode(t *testing.T) {
	in := newDrawing(t)
	v, err := decode[drawing](t, in, `{"main":{"radius":1.5,"kind":"circle"},"extra":{"kind":"box","side":2},
		"more":[{"kind":"group","name":"g","members":[{"kind":"circle","radius":1},{"kind":"group","name":"h","members":[]}]}],
		"named":{"a":{"kind":"box","side":1,"label":"x"}},"plain":{"radius":3}}`)
	require.NoError(t, err)
	require.Equal(t, drawing{
		Main: circle{1.5}, Extra: square{2, "box"},
		More:  []figure{&group{"g", []figure{circle{1}, &group{"h", []figure{}}}}},
		Named: map[string]figure{"a": square{1, "x"}}, Plain: &circle{3},
	}, v)
}

func TestUnionRefusals(t *testing.T) {
	in := newDrawing(t)
	for args, want := range map[string][]string{
		`{}`:                         {`/main: missing, want an object whose "kind" is "circle", "box" or "group"`},
		`{"main":null}`:              {`/main: got null, want an object whose "kind" is "circle", "box" or "group"`},
		`{"main":"circle"}`:          {`/main: got "circle", want an object whose "kind" is "circle", "box" or "group"`},
		`{"main":{"radius":1}}`:      {`/main/kind: missing, want one of "circle", "box" or "group"`},
		`{"main":{"kind":1}}`:        {`/main/kind: got 1, want one of "circle", "box" or "group"`},
		`{"main":{"kind":"circel"}}`: {`/main/kind: got "circel", want one of "circle", "box" or "group"; did you mean "circle"?`},
		`{"main":{"kind":"square"}}`: {`/main/kind: got "square", want one of "circle", "box" or "group"`},
		`{"main":{"kind":"circle","side":1}}`: {`/main/side: unknown; known: "kind", "radius"`,
			`/main/radius: missing, want a number greater than 0`},
		`{"main":{"kind":"circle","radius":1,"kind":"box"}}`: {`/main/kind: got "box" a second time, want the name only once`},
		`{"main":{"kind":"group","name":"g","members":[{"kind":"circle","radius":-1},{"kind":"hexagon"},{"kind":"box","side":1,"label":"too long"}]}}`: {
			`/main/members/0/radius: got -1, want a number greater than 0`,
			`/main/members/1/kind: got "hexagon", want one of "circle", "box" or "group"`,
			`/main/members/2/label: got "too long", want a string of at most 5 characters`},
		`{"main":{"kind":"circle","radius":1},"plain":{"kind":"circle","radius":1}}`: {`/plain/kind: unknown; known: "radius"`},
	} {
		require.Equal(t, want, violations[drawing](t, in, args), args)
	}
}

// TestUnionAgreement checks that the schema and the decoder accept the same figures. An accepted
// figure is encoded with its discriminators; the result is decoded to the same figure and fits the
// output schema.
func TestUnionAgreement(t *testing.T) {
	in := newDrawing(t)
	schema := compileSchema(t, in.Schema())
	o := reflectx.InputOptions{Unions: figures(t)}
	out, err := reflectx.OutputSchema("T", reflect.TypeFor[drawing](), o)
	require.NoError(t, err)
	outSchema := compileSchema(t, out)
	encode := reflectx.OutputEncoder(reflect.TypeFor[drawing](), o)
	accepted := 0
	rapid.Check(t, func(rt *rapid.T) {
		args := `{"main":` + drawFigure(rt, 2)
		if rapid.Bool().Draw(rt, "extra") {
			args += `,"extra":` + drawFigure(rt, 1)
		}
		if rapid.Bool().Draw(rt, "more") {
			args += `,"more":` + drawList(rt, func() string { return drawFigure(rt, 1) })
		}
		if rapid.Bool().Draw(rt, "named") {
			args += `,"named":` + drawMembers(rt, func() string { return drawString(rt, "") }, func() string { return drawFigure(rt, 1) })
		}
		args += `}`
		v := reflect.New(in.Type()).Elem()
		err := in.Decode(context.Background(), json.RawMessage(args), v)
		if takes := takesArgs(rt, schema, withoutNulls(in, args)); takes != (err == nil) {
			rt.Fatalf("%s: the schema takes it: %t, the decoder: %v", args, takes, err)
		}
		if err != nil {
			return
		}
		accepted++
		written, err := encode(nil, v)
		if err != nil {
			rt.Fatalf("%s: %v", args, err)
		}
		again := reflect.New(in.Type()).Elem()
		if err := in.Decode(context.Background(), written, again); err != nil {
			rt.Fatalf("%s was written as %s, which is refused: %v", args, written, err)
		}
		if twice, err := encode(nil, again); err != nil || string(twice) != string(written) {
			rt.Fatalf("%s was written as %s, and that as %s: %v", args, written, twice, err)
		}
		if !takesArgs(rt, outSchema, string(written)) {
			rt.Fatalf("%s is not what the schema of results says: %s", written, out)
		}
	})
	require.Positive(t, accepted)
}

// drawFigure draws a figure, which is usually valid.
func drawFigure(rt *rapid.T, depth int) string {
	right := []string{`"circle"`, `"box"`, `"group"`, `"\u0062ox"`}
	kinds := slices.Concat(right, right, right, []string{`"Circle"`, `"square"`, `1`, `null`})
	members := map[string]string{"kind": rapid.SampledFrom(kinds).Draw(rt, "kind")}
	switch members["kind"] {
	case `"circle"`:
		members["radius"] = rapid.SampledFrom([]string{"1", "2.5", "3", "4", "5", "6", "0", `"1"`, "null"}).Draw(rt, "radius")
	case `"box"`, `"\u0062ox"`:
		members["side"] = rapid.SampledFrom([]string{"1", "0.5", "1e1", "2", "3", "4", "0.25", "true"}).Draw(rt, "side")
		if rapid.Bool().Draw(rt, "labelled") {
			members["label"] = rapid.SampledFrom([]string{`"a"`, `""`, `"b"`, `"too long"`, `null`}).Draw(rt, "label")
		}
	case `"group"`:
		members["name"] = `"g"`
		if depth > 0 {
			members["members"] = drawList(rt, func() string { return drawFigure(rt, depth-1) })
		}
	}
	switch rapid.IntRange(0, 30).Draw(rt, "twist") {
	case 0:
		delete(members, "kind")
	case 1:
		members["radius"] = "1"
	case 2:
		return drawAny(rt, 1)
	}
	var out []string
	for name, value := range members {
		out = append(out, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(out, ",") + "}"
}

func TestUnionOutput(t *testing.T) {
	o := reflectx.InputOptions{Unions: figures(t)}
	encode := reflectx.OutputEncoder(reflect.TypeFor[drawing](), o)
	for want, v := range map[string]drawing{
		`{"main":null}`:                         {},
		`{"main":{"kind":"circle","radius":1}}`: {Main: circle{1}},
		`{"main":{"kind":"circle","radius":2}}`: {Main: &circle{2}},
		`{"main":null,"extra":{"kind":"box","side":1,"label":""},"more":[null,{"kind":"group","name":"g","members":[]}],"named":{"a":{"kind":"circle","radius":1},"b":null},"plain":{"radius":3}}`: {
			Extra: square{Side: 1}, More: []figure{nil, &group{Name: "g"}}, Named: map[string]figure{"b": (*circle)(nil), "a": circle{1}}, Plain: &circle{3}},
	} {
		got, err := encode(nil, reflect.ValueOf(v))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
		out, err := reflectx.OutputSchema("T", reflect.TypeFor[drawing](), o)
		require.NoError(t, err)
		require.True(t, takesArgs(t, compileSchema(t, out), want), "%s", out)
	}
	_, err := encode(nil, reflect.ValueOf(drawing{Main: triangle{}}))
	require.EqualError(t, err, "a reflectx_test.triangle is not a case of the union reflectx_test.figure; its cases are reflectx_test.circle, reflectx_test.square and *reflectx_test.group")

	around := &group{Name: "g"}
	around.Members = []figure{around}
	_, err = encode(nil, reflect.ValueOf(drawing{Main: around}))
	require.EqualError(t, err, "a reflectx_test.group is more than 1000 levels deep, or contains itself")

	require.Nil(t, reflectx.OutputEncoder(reflect.TypeFor[circle](), o), "it holds no union")
	require.Nil(t, reflectx.OutputEncoder(reflect.TypeFor[drawing](), reflectx.InputOptions{}))
	require.NotNil(t, reflectx.OutputEncoder(reflect.TypeFor[figure](), o))
}

type triangle struct{}

func (triangle) Area() float64 { return 0 }

// TestUnionEncoderMatchesTheUsualEncoder checks a struct with every option of json tags and a nil
// union.
func TestUnionEncoderMatchesTheUsualEncoder(t *testing.T) {
	type Inner struct {
		X int `json:"x"`
	}
	type embedded struct{ Y string }
	type all struct {
		A int `json:"a,omitempty"`
		B bool
		C string  `json:"-"`
		D string  `json:"-,"`
		E []Inner `json:"e,omitempty"`
		F *Inner  `json:"f,omitzero"`
		G Inner   `json:"g,omitzero"`
		embedded
		*Inner
		H map[int]figure  `json:"h"`
		I [2]*figure      `json:"i"`
		J figure          `json:"j,omitempty"`
		K json.RawMessage `json:"k,omitempty"`
		l int
	}
	o := reflectx.InputOptions{Unions: figures(t)}
	encode := reflectx.OutputEncoder(reflect.TypeFor[all](), o)
	for _, v := range []all{
		{H: map[int]figure{}}, {A: 1, B: true, C: "c", D: "<d>", E: []Inner{{1}}, F: &Inner{}, G: Inner{1}, embedded: embedded{"y"}, Inner: &Inner{2},
			H: map[int]figure{10: nil, 9: nil}, K: json.RawMessage(`{"k":1}`), l: 1},
	} {
		want, err := json.Marshal(v)
		require.NoError(t, err)
		got, err := encode(nil, reflect.ValueOf(v))
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got))
	}
}

func TestUnionMistakes(t *testing.T) {
	cases := func(types ...reflect.Type) (all []reflectx.UnionCase) {
		for _, typ := range types {
			all = append(all, reflectx.UnionCase{Type: typ})
		}
		return all
	}
	for want, give := range map[string]struct {
		iface reflect.Type
		tag   string
		cases []reflectx.UnionCase
	}{
		`U: int is not an interface with methods; a union is of an interface that its cases implement`: {reflect.TypeFor[int](), "kind", cases(reflect.TypeFor[circle]())},
		"U: the discriminator is \"\"; write the name of a member, such as \"kind\"\n" +
			"U: there are no cases; write a value of each type, such as Circle{}": {reflect.TypeFor[figure](), "", nil},
		"U: case 1 is a int; write a struct with a name, or a pointer to one\n" +
			"U: case 2, reflectx_test.place, does not implement reflectx_test.figure\n" +
			"U: case 3, reflectx_test.group, does not implement reflectx_test.figure": {reflect.TypeFor[figure](), "kind", cases(reflect.TypeFor[int](), reflect.TypeFor[place](), reflect.TypeFor[group]())},
		"U: reflectx_test.circle and reflectx_test.square are both the case \"circle\"; give one another name": {reflect.TypeFor[figure](), "kind",
			[]reflectx.UnionCase{{Type: reflect.TypeFor[circle]()}, {Name: "circle", Type: reflect.TypeFor[square]()}}},
		"U: reflectx_test.circle is a case twice": {reflect.TypeFor[figure](), "kind",
			[]reflectx.UnionCase{{Type: reflect.TypeFor[circle]()}, {Name: "other", Type: reflect.TypeFor[*circle]()}}},
	} {
		_, err := reflectx.NewUnion("U", give.iface, give.tag, give.cases)
		require.EqualError(t, err, want)
	}
}

func TestMistakesWithUnions(t *testing.T) {
	taken, err := reflectx.NewUnion("U", reflect.TypeFor[figure](), "radius", cases1())
	require.NoError(t, err)
	for want, give := range map[string]struct {
		typ    reflect.Type
		unions map[reflect.Type]*reflectx.Union
	}{
		"T, field F: reflectx_test.circle has a member \"radius\", which as a case of a union it gets anyway; leave the field Radius out": {
			reflect.TypeFor[struct{ F figure }](), map[reflect.Type]*reflectx.Union{taken.Interface: taken}},
		"T, field F: rule \"min=1\" does not fit the union reflectx_test.figure; write rules at the fields of its cases": {
			reflect.TypeFor[struct {
				F figure `validate:"min=1"`
			}](), figures(t)},
		"T, field F: rule \"unique\" does not fit []reflectx_test.figure, whose elements cannot be compared": {
			reflect.TypeFor[struct {
				F []figure `validate:"unique"`
			}](), figures(t)},
		"T, field F: the interface reflectx_test.figure has no JSON; register its types as a union, take any, or hide the field with json:\"-\"": {
			reflect.TypeFor[struct{ F figure }](), nil},
		"T, field F: the default at /kind is \"oval\", which is not one of \"circle\", \"box\" or \"group\"; write one that is": {
			reflect.TypeFor[struct {
				F figure `default:"{\"kind\":\"oval\"}"`
			}](), figures(t)},
	} {
		_, err := reflectx.NewInput("T", give.typ, reflectx.InputOptions{Unions: give.unions})
		require.EqualError(t, err, want)
	}
}

func cases1() []reflectx.UnionCase { return []reflectx.UnionCase{{Type: reflect.TypeFor[circle]()}} }

type login struct {
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty" secret:"true"`
	Again    string `json:"again,omitempty" validate:"eqfield=Password"`
}

type token struct {
	User  string `json:"user" validate:"required"`
	Count int    `json:"count" validate:"required,odd"`
}

type credentials interface{ isCredentials() }

func (login) isCredentials() {}
func (token) isCredentials() {}

// TestValidatorRulesApplyInsideUnions covers a rule that compares fields, a custom rule, and a
// present zero, which the validator takes for a missing value.
func TestValidatorRulesApplyInsideUnions(t *testing.T) {
	u, err := reflectx.NewUnion("U", reflect.TypeFor[credentials](), "type", []reflectx.UnionCase{{Type: reflect.TypeFor[login]()}, {Type: reflect.TypeFor[token]()}})
	require.NoError(t, err)
	v := validator.New(validator.WithRequiredStructEnabled())
	require.NoError(t, v.RegisterValidation("odd", func(fl validator.FieldLevel) bool { return fl.Field().Int()%2 != 0 }))
	type input struct {
		One  credentials   `json:"one"`
		Many []credentials `json:"many" validate:"dive"`
	}
	in, err := reflectx.NewInput("T", reflect.TypeFor[input](), reflectx.InputOptions{Unions: map[reflect.Type]*reflectx.Union{u.Interface: u}, Validate: v})
	require.NoError(t, err)
	_, err = decode[input](t, in, `{"one":{"type":"login","user":"","password":"x","again":"x"},"many":[{"type":"token","user":"","count":1}]}`)
	require.NoError(t, err)
	require.Equal(t, []string{
		`/one/again: got "y", want a string that must equal password, which is ***`,
		`/many/0/count: got 2, want an integer that satisfies odd`,
	}, violations[input](t, in, `{"one":{"type":"login","password":"x","again":"y"},"many":[{"type":"token","user":"u","count":2},{"type":"login"}]}`))

	fields := in.Fields()
	require.Equal(t, "one", fields[0].Name)
	secrets := map[string]bool{}
	for _, f := range fields[0].Fields {
		secrets[f.Name] = f.Secret
	}
	require.Equal(t, map[string]bool{"type": false, "user": false, "password": true, "again": false, "count": false}, secrets)
}

// TestUnionParameter covers a union as a plain parameter, and JSON in a string with Repair.
func TestUnionParameter(t *testing.T) {
	var got figure
	f, err := reflectx.Compile(reflect.ValueOf(func(_ context.Context, f figure) { got = f }), reflectx.FuncOptions{
		Params: "figure", HasParams: true, Input: reflectx.InputOptions{Unions: figures(t), Repair: true},
	})
	require.NoError(t, err)
	_, err = f.Call(context.Background(), json.RawMessage(`{"figure":{"kind":"box","side":1}}`))
	require.NoError(t, err)
	require.Equal(t, square{1, "box"}, got)
	_, err = f.Call(context.Background(), json.RawMessage(`{"figure":"{\"kind\":\"circle\",\"radius\":\"2\"}"}`))
	require.EqualError(t, err, "1 problem with the arguments:\n/figure/radius: got \"2\", want a number greater than 0\nExample: {\"figure\":{\"kind\":\"circle\",\"radius\":1}}")
	_, err = f.Call(context.Background(), json.RawMessage(`{"figure":"{\"kind\":\"circle\",\"radius\":2}"}`))
	require.NoError(t, err)
	require.Equal(t, circle{2}, got)
}
