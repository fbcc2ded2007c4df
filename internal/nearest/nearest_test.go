package nearest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	known := []string{"required", "readonly", "open-world", "min", "max", "limit"}
	for _, test := range []struct{ word, want string }{
		{"requird", "required"},
		{"Required", "required"},
		{"openworld", "open-world"},
		{"raedonly", "readonly"},
		{"limti", "limit"},
		{"mn", "min"},
		{"banana", ""},
		{"", ""},
	} {
		require.Equal(t, test.want, Of(test.word, known), "nearest to %q", test.word)
	}
}

func TestHintIsEmptyWithoutASimilarWord(t *testing.T) {
	require.Equal(t, `; did you mean "limit"?`, Hint("limits", []string{"limit"}))
	require.Empty(t, Hint("zebra", []string{"limit"}))
}
