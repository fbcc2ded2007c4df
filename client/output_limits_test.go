package client

import (
	"fmt"
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
