package reflectx_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-playground/validator/v10"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

// booking has rules of every kind: compiled, about two fields, custom, and about the struct.
type booking struct {
	Name  string `json:"name" validate:"min=2"`
	From  int    `json:"from" validate:"max=100"`
	Until int    `json:"until" validate:"gtfield=From"`
	Seats int    `json:"seats" validate:"even"`
	Legs  []hop  `json:"legs,omitempty" validate:"dive"`
}

type hop struct {
	Low  int `json:"low" validate:"max=50"`
	High int `json:"high"`
}

func newBooking(t *testing.T) *reflectx.Input {
	v := validator.New(validator.WithRequiredStructEnabled())
	require.NoError(t, v.RegisterValidation("even", func(fl validator.FieldLevel) bool { return fl.Field().Int()%2 == 0 }))
	v.RegisterStructValidation(func(sl validator.StructLevel) {
		if h := sl.Current().Interface().(hop); h.Low > h.High {
			sl.ReportError(h.High, "high", "High", "ordered", "")
		}
	}, hop{})
	in, err := reflectx.NewInput("T", reflect.TypeFor[booking](), reflectx.InputOptions{Validate: v})
	require.NoError(t, err)
	return in
}

func TestViolationsAreReportedTogether(t *testing.T) {
	in := newBooking(t)
	got := violations[booking](t, in, `{"name":"x","from":5,"until":3,"seats":3,"legs":[{"low":2,"high":1}],"more":1}`)
	require.ElementsMatch(t, []string{
		`/more: unknown; known: "name", "from", "until", "seats", "legs"`,
		`/name: got "x", want a string of at least 2 characters`,
		`/until: got 3, want an integer that must be greater than from, which is 5`,
		`/seats: got 3, want an integer that satisfies even`,
		`/legs/0/high: got 1, want an integer that satisfies ordered`,
	}, got)
}

func TestRulesAreNotCheckedForWrongValues(t *testing.T) {
	in := newBooking(t)
	// from is not an integer, so until is not compared with it. The second leg has no low.
	require.ElementsMatch(t, []string{
		`/from: got "five", want an integer of at most 100`,
		`/legs/0/high: got 1, want an integer that satisfies ordered`,
		`/legs/1/low: missing, want an integer of at most 50`,
	}, violations[booking](t, in, `{"name":"xy","from":"five","until":-3,"seats":2,"legs":[{"low":2,"high":1},{"high":-1}]}`))
}

func TestStructRulesAreInTheDescription(t *testing.T) {
	schema := string(newBooking(t).Schema())
	require.Equal(t, 1, strings.Count(schema, "The members must also fit one another."))
	require.Contains(t, schema, `"items":{"type":"object","description":"The members must also fit one another."`)
}

// The program's own validator may give a rule another meaning. That meaning applies, and the
// validator is asked once.
func TestCustomValidatorChecksEveryRule(t *testing.T) {
	asked := 0
	v := validator.New(validator.WithRequiredStructEnabled())
	require.NoError(t, v.RegisterValidation("alpha", func(fl validator.FieldLevel) bool {
		asked++
		return strings.HasPrefix(fl.Field().String(), "ß")
	}))
	type input struct {
		Word  string            `json:"word" validate:"alpha,max=5"`
		Zero  int               `json:"zero" validate:"required,min=1"`
		Wait  time.Duration     `json:"wait" validate:"min=1s"`
		List  []string          `json:"list" validate:"max=2,dive,min=2"`
		ByKey map[string]int    `json:"byKey" validate:"dive,keys,len=2,endkeys,max=3"`
		Any   any               `json:"any,omitempty" validate:"omitempty,min=2"`
		Extra map[string]string `json:"extra,omitempty"`
	}
	in, err := reflectx.NewInput("T", reflect.TypeFor[input](), reflectx.InputOptions{Validate: v})
	require.NoError(t, err)
	asked = 0
	_, err = decode[input](t, in, `{"word":"ßx","zero":1,"wait":"2s","list":["ab"],"byKey":{"ab":1},"any":"xy"}`)
	require.NoError(t, err)
	require.Equal(t, 1, asked, "no rule is asked twice")
	require.ElementsMatch(t, []string{
		`/word: got "abc", want a string of at most 5 characters, of letters a-z only`,
		`/zero: got 0, want an integer of at least 1`,
		`/wait: got "1ms", want a duration such as "1h30m" of at least 1s`,
		`/list/1: got "a", want a string of at least 2 characters`,
		`/byKey/ab: got 9, want an integer of at most 3`,
		`/any: got "x", want a value that satisfies min=2`,
	}, violations[input](t, in, `{"word":"abc","zero":0,"wait":"1ms","list":["ab","a"],"byKey":{"ab":9},"any":"x"}`))
	require.Contains(t, string(in.Schema()), `"zero":{"type":"integer","minimum":1}`, "the schema has the usual meaning")
}

func TestCustomValidatorChecksElementsAfterDive(t *testing.T) {
	type input struct {
		Legs []hop `json:"legs"`
	}
	_, err := reflectx.NewInput("T", reflect.TypeFor[input](), reflectx.InputOptions{Validate: validator.New(validator.WithRequiredStructEnabled())})
	require.EqualError(t, err, `T, field Legs: the elements have the rule "max=50", which is asked only where the validate tag says dive; write validate:"dive"`)
}

// untested are the rules that the property test does not cover, with the reason.
var untested = func() map[string]string {
	reasons := map[string]string{
		"isdefault": "it is a mistake of the author: nothing could be given (TestMistakesInTagsAreReported)",
		"file":      "what it accepts depends on the disk", "dir": "what it accepts depends on the disk", "filepath": "what it accepts depends on the disk",
		"dirpath": "what it accepts depends on the disk", "image": "what it accepts depends on the disk", "mimetype": "what it accepts depends on the disk", "uds_exists": "what it accepts depends on the disk",
		"skip_unless": "it is a mistake of the author: it takes back what the schema says of other rules (TestMistakesInTagsAreReported)",
		"validateFn":  "what it asks is a method of the author's",
	}
	for _, how := range []string{"if", "unless", "with", "with_all", "without", "without_all"} {
		for _, what := range []string{"required", "excluded"} {
			reasons[what+"_"+how] = "it is about other members (TestPresenceRulesAgreeWithTheSchema)"
		}
	}
	for _, tag := range strings.Fields(`eqfield nefield gtfield gtefield ltfield ltefield fieldcontains fieldexcludes eqcsfield necsfield gtcsfield gtecsfield ltcsfield
		ltecsfield postcode_iso3166_alpha2_field`) {
		reasons[tag] = "it compares members, for which there is no keyword (TestRulesThatCompareMembers)"
	}
	return reasons
}()

// TestRulesThatCompareMembers covers every rule that compares members: each is enforced and in the
// description.
func TestRulesThatCompareMembers(t *testing.T) {
	for _, test := range []struct{ rule, right, wrong string }{
		{"eqfield=A", `"a":"x","b":"x"`, `"a":"x","b":"y"`}, {"nefield=A", `"a":"x","b":"y"`, `"a":"x","b":"x"`},
		{"gtfield=A", `"a":"x","b":"xy"`, `"a":"x","b":"x"`}, {"gtefield=A", `"a":"x","b":"x"`, `"a":"xy","b":"x"`},
		{"ltfield=A", `"a":"xy","b":"x"`, `"a":"x","b":"x"`}, {"ltefield=A", `"a":"x","b":"x"`, `"a":"x","b":"xy"`},
		{"eqcsfield=A", `"a":"x","b":"x"`, `"a":"x","b":"y"`}, {"necsfield=A", `"a":"x","b":"y"`, `"a":"x","b":"x"`},
		{"gtcsfield=A", `"a":"x","b":"xy"`, `"a":"x","b":"x"`}, {"gtecsfield=A", `"a":"x","b":"x"`, `"a":"xy","b":"x"`},
		{"ltcsfield=A", `"a":"xy","b":"x"`, `"a":"x","b":"x"`}, {"ltecsfield=A", `"a":"x","b":"x"`, `"a":"x","b":"xy"`},
		{"fieldcontains=A", `"a":"x","b":"axb"`, `"a":"x","b":"y"`}, {"fieldexcludes=A", `"a":"x","b":"y"`, `"a":"x","b":"axb"`},
		{"postcode_iso3166_alpha2_field=A", `"a":"DE","b":"10115"`, `"a":"DE","b":"x"`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			in, err := reflectx.NewInput("T", reflect.StructOf([]reflect.StructField{
				{Name: "A", Type: reflect.TypeFor[string](), Tag: `json:"a"`},
				{Name: "B", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(`json:"b" validate:"` + test.rule + `"`)},
			}), reflectx.InputOptions{})
			require.NoError(t, err)
			require.NoError(t, in.Decode(t.Context(), []byte("{"+test.right+"}"), reflect.New(in.Type()).Elem()))
			err = in.Decode(t.Context(), []byte("{"+test.wrong+"}"), reflect.New(in.Type()).Elem())
			require.ErrorContains(t, err, "1 problem with the arguments:\n/b: got ")
		})
	}
}

// TestEveryValidatorTagMatchesItsSchema reads the rules of the validator. Each is in the list of
// the compiler, and either in the property test or in untested.
func TestEveryValidatorTagMatchesItsSchema(t *testing.T) {
	inside := reflect.ValueOf(validator.New()).Elem()
	var tags []string
	for _, field := range []string{"validations", "aliases"} {
		for _, key := range inside.FieldByName(field).MapKeys() {
			tags = append(tags, key.String())
		}
	}
	slices.Sort(tags)
	require.Greater(t, len(tags), 150)
	tested := map[string]bool{}
	for _, a := range agreements() {
		for _, rule := range strings.FieldsFunc(a.tag, func(r rune) bool { return r == ',' || r == '|' }) {
			name, _, _ := strings.Cut(rule, "=")
			tested[name] = true
		}
	}
	var missing []string
	for _, tag := range tags {
		if !tested[tag] && untested[tag] == "" {
			missing = append(missing, tag)
		}
	}
	require.Empty(t, missing)
	for tag := range untested {
		require.Contains(t, tags, tag)
		require.False(t, tested[tag], "%s is tested", tag)
	}
}

func TestRulesOfElementsAndKeysAreDescribed(t *testing.T) {
	type args struct {
		Grid    [][]time.Duration `json:"grid" validate:"dive,dive,min=1s"`
		Routes  map[string]string `json:"routes" validate:"dive,keys,mac,endkeys,cidr"`
		Numbers map[int]string    `json:"numbers" validate:"dive,keys,min=1,endkeys"`
	}
	in, err := reflectx.NewInput("T", reflect.TypeFor[args](), reflectx.InputOptions{})
	require.NoError(t, err)
	for _, want := range []string{
		`"items":{"type":"array","items":{"type":"string","description":"Must be at least 1s."`,
		`"propertyNames":{"description":"Must be a value that is a MAC address."},"additionalProperties":{"type":"string","description":"Must be a value that is a network such as \"10.0.0.0/8\"."}`,
		`"propertyNames":{"description":"Must be an integer of at least 1.","pattern":"^(0|-?[1-9][0-9]*)$"}`,
	} {
		require.Contains(t, string(in.Schema()), want)
	}
}

func TestUniqueOfElementsThatCannotBeComparedIsAMistake(t *testing.T) {
	type element struct {
		Tags []string `json:"tags"`
		Any  any      `json:"any"`
	}
	for want, typ := range map[string]reflect.Type{
		`T, field A: rule "unique" does not fit []interface {}, whose elements cannot be compared`: reflect.TypeFor[struct {
			A []any `json:"a" validate:"unique"`
		}](),
		`T, field A: rule "unique=Tags" does not fit []reflectx_test.element, whose elements have a field Tags that cannot be compared`: reflect.TypeFor[struct {
			A []element `json:"a" validate:"unique=Tags"`
		}](),
		`T, field A: rule "unique=Any" does not fit []reflectx_test.element, whose elements have a field Any that cannot be compared`: reflect.TypeFor[struct {
			A []element `json:"a" validate:"unique=Any"`
		}](),
	} {
		_, err := reflectx.NewInput("T", typ, reflectx.InputOptions{})
		require.EqualError(t, err, want)
	}
}
