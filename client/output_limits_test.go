package client

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSchemasThatReferToEachOtherAgainAndAgainAreNotChecked(t *testing.T) {
	var defs strings.Builder
	for i := range 40 {
		fmt.Fprintf(&defs, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	s := newOutputSchema([]byte(`{"$ref":"#/$defs/a0","$defs":{`+defs.String()+`"a40":{"multipleOf":2}}}`), false)
	_, err := s.check([]byte(`1`))
	require.ErrorIs(t, err, errSteps)
}

func TestOutputsAreNotCheckedIfThatIsExpensive(t *testing.T) {
	many := func(n int, item string) string { // item contains one %d
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprintf(item, i)
		}
		return strings.Join(items, ",")
	}
	const steps = "the check takes too long"
	for _, test := range []struct {
		name, schema, output string
		err                  string
	}{
		{"a long enum for many values", `{"items":{"enum":[` + many(50_000, `"v%d"`) + `]}}`, `[` + many(2_000, `"x%d"`) + `]`, steps},
		{"many required properties of many objects", `{"items":{"required":[` + many(50_000, `"v%d"`) + `]}}`, `[` + many(2_000, `{"x":%d}`) + `]`, steps},
		{"many dependent properties of many objects", `{"items":{"dependentRequired":{` + many(50_000, `"v%d":[]`) + `}}}`, `[` + many(2_000, `{"x":%d}`) + `]`, steps},
		{"many values", `{"items":{"minimum":1}}`, `[` + many(maxOutputSteps+1, "1%d") + `]`, steps},
		{"a large schema", `{"title":"` + strings.Repeat("x", maxOutputSchema) + `"}`, `{}`, "it is larger than 1048576 bytes"},
		{"a long number", `{"minimum":1,"minLength":0}`, strings.Repeat("1", 65), `the number "` + strings.Repeat("1", 40) + `" is too large`},
		{"a large exponent", `{"minimum":1,"minLength":0}`, `1e401`, `the number "1e401" is too large`},
		{"an enum", `{"items":{"enum":[` + many(200, `"v%d"`) + `]}}`, `[` + many(200, `"v%d"`) + `]`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			faults, err := newOutputSchema([]byte(test.schema), false).check([]byte(test.output))
			if test.err == "" {
				require.NoError(t, err)
				require.Empty(t, faults)
				return
			}
			require.ErrorContains(t, err, test.err)
		})
	}
}

// The largest patterns that fit into a schema take gigabytes and half a minute to compile.
func TestPatternsOfServersAreNotCompiled(t *testing.T) {
	pattern := strings.Repeat("(a|b)", 50_000)
	schema := fmt.Sprintf(`{"type":"object","properties":{"a":{"type":"string","pattern":"%s"},"b":{"type":"integer"}}}`, pattern)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	faults, err := newOutputSchema([]byte(schema), false).check([]byte(`{"a":"x","b":"x"}`))
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, []string{`at "/b": got string, want integer`}, faults, "the other keywords are checked")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}

func TestPatternsAreCheckedOnlyIfTheProgramTrustsTheServer(t *testing.T) {
	const combined = "it combines patterns with other keywords, and patterns of servers are ignored; see CheckPatterns"
	for _, test := range []struct {
		schema, output string
		ignored, fault string // why outputs are not checked, and the fault that CheckPatterns finds
		alwaysOK       bool
	}{
		{schema: `{"pattern":"^a"}`, output: `"b"`, fault: `at "": 'b' does not match pattern '^a'`},
		{schema: `{"properties":{"pattern":{"type":"string"}}}`, output: `{"pattern":"b"}`, alwaysOK: true},
		{schema: `{"not":{"pattern":"^a"}}`, output: `"b"`, ignored: combined, alwaysOK: true},
		{schema: `{"oneOf":[{"pattern":"^a"},{"pattern":"^b"}]}`, output: `"b"`, ignored: combined, alwaysOK: true},
		{schema: `{"patternProperties":{"^a":{"type":"string"}}}`, output: `{"a":1}`, ignored: combined, fault: `at "/a": got number, want string`},
	} {
		faults, err := newOutputSchema([]byte(test.schema), false).check([]byte(test.output))
		require.Empty(t, faults, test.schema)
		if test.ignored == "" {
			require.NoError(t, err, test.schema)
		} else {
			require.EqualError(t, err, test.ignored, test.schema)
		}
		faults, err = newOutputSchema([]byte(test.schema), true).check([]byte(test.output))
		require.NoError(t, err)
		if test.alwaysOK {
			require.Empty(t, faults, test.schema)
		} else {
			require.Equal(t, []string{test.fault}, faults)
		}
	}
}
