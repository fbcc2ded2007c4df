package reflectx

import (
	"reflect"
	"slices"
	"testing"

	"github.com/go-playground/validator/v10"
	"github.com/stretchr/testify/require"
)

// TestValidateTagsMatchTheValidator reads unexported fields of the validator. validateTags lists
// its rules and aliases, its keywords, and enum, and no others.
func TestValidateTagsMatchTheValidator(t *testing.T) {
	known := slices.Clone(validateTags())
	slices.Sort(known)
	require.Equal(t, slices.Compact(slices.Clone(known)), known, "no duplicates")

	v := reflect.ValueOf(validator.New()).Elem()
	want := []string{"omitempty", "omitnil", "omitzero", "structonly", "nostructlevel", "dive", "keys", "endkeys", "enum"}
	for _, table := range []string{"validations", "aliases"} {
		keys := v.FieldByName(table).MapKeys()
		require.NotEmpty(t, keys, table)
		for _, key := range keys {
			if !slices.Contains(want, key.String()) {
				want = append(want, key.String())
			}
		}
	}
	slices.Sort(want)
	require.Equal(t, want, known)
}
