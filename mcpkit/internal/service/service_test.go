package service

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDescriptionsAreWithoutTheNameOfTheMethod(t *testing.T) {
	for doc, want := range map[string]string{
		"Search finds notes.":               "Finds notes.",
		"Search finds.":                     "Finds.",
		"Search counts, and tells.":         "Counts, and tells.",
		"Search élargit.":                   "Search élargit.",
		"Search of a shape.":                "Search of a shape.",
		"Search is binary.":                 "Search is binary.",
		"Search has two ways.":              "Search has two ways.",
		"Search":                            "Search",
		"Search ":                           "Search ",
		"Searches for notes.":               "Searches for notes.",
		"Finds notes.":                      "Finds notes.",
		"Search looks\nfor notes, at once.": "Looks\nfor notes, at once.",
	} {
		require.Equal(t, want, describe("Search", doc))
	}
}
