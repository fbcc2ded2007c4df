package reflectx

import (
	"reflect"
	"slices"
	"testing"

	"github.com/go-playground/validator/v10"
	"github.com/stretchr/testify/require"
)

// TestValidateTagsMatchTheValidator looks at what the validator keeps to itself, in the version
// that is used: each rule and alias that it comes with is known here, and no other except the
// keywords that it reads before any rule, and enum.
func TestValidateTagsMatchTheValidator(t *testing.T) {
	known := slices.Clone(validateTags())
	slices.Sort(known)
	require.Equal(t, slices.Compact(slices.Clone(known)), known, "one is there twice")

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
