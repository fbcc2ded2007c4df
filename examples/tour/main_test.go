package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTourShowsMistakesAndAResult(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, tour(t.Context(), &out))
	require.Contains(t, out.String(), "The server has the tool brew: Brews tea, and says what it costs.")
	require.Contains(t, out.String(), `want one of "green", "black" or "mint"`)
	require.Contains(t, out.String(), "Here you are: 2 cups of green tea. That is 5.00 euros.")
}
