package longtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLongTestsRunIfTheVariableIsOne(t *testing.T) {
	for value, runs := range map[string]bool{"": false, "1": true, "0": false} {
		t.Setenv("LONG_TESTS", value)
		var got *testing.T
		t.Run("long", func(t *testing.T) {
			got = t
			Mark(t, "builds a program")
		})
		require.Equal(t, runs, All(), "%q", value)
		require.Equal(t, !runs, got.Skipped(), "%q", value)
	}
	require.Equal(t, `long, because it builds a program; to run it: LONG_TESTS=1 go test -run '^TestX$' in its folder, or make nightly`, reason("TestX", "builds a program"))
}
