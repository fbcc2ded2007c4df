package mcpkit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTagsThatAreNotPairs(t *testing.T) {
	for _, test := range []struct{ tag, want string }{
		{`title`, `tag "title" is not made of key:"value" pairs`},
		{`title:Notes`, `tag "title:Notes" is not made of key:"value" pairs`},
		{`title:"Notes`, `the value of tag "title" has no closing quote`},
		{`title:"a" title:"b"`, `tag "title" stands twice`},
		{`title:"a", name:"b"`, `tag ", name:\"b\"" is not made of key:"value" pairs`},
	} {
		var faults []string
		for range tagPairs(test.tag, &faults) {
		}
		require.Equal(t, []string{test.want}, faults, test.tag)
	}
}
