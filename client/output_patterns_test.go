package client

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The largest patterns that fit into a schema take gigabytes and half a minute to compile.
func TestPatternsOfServersAreNotCompiled(t *testing.T) {
	pattern := strings.Repeat("(a|b)", 50_000)
	schema := fmt.Sprintf(`{"type":"object","properties":{"a":{"type":"string","pattern":"%s"},"b":{"type":"integer"}}}`, pattern)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	faults, err := newOutputSchema([]byte(schema)).check([]byte(`{"a":"x","b":"x"}`))
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, []string{`at "/b": got string, want integer`}, faults, "the other keywords are checked")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}

func TestSchemasThatPatternsDecideAreNotChecked(t *testing.T) {
	const combined = "it combines patterns with other keywords, and patterns of servers are ignored"
	for _, test := range []struct{ schema, output, err string }{
		{`{"pattern":"^a"}`, `"b"`, ""},
		{`{"properties":{"pattern":{"type":"string"}}}`, `{"pattern":"b"}`, ""},
		{`{"not":{"pattern":"^a"}}`, `"b"`, combined},
		{`{"oneOf":[{"pattern":"^a"},{"pattern":"^b"}]}`, `"b"`, combined},
		{`{"patternProperties":{"^a":{"type":"string"}}}`, `{"a":1}`, combined},
	} {
		faults, err := newOutputSchema([]byte(test.schema)).check([]byte(test.output))
		require.Empty(t, faults, test.schema)
		if test.err == "" {
			require.NoError(t, err, test.schema)
		} else {
			require.EqualError(t, err, test.err, test.schema)
		}
	}
}
