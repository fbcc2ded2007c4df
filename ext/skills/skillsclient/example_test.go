package skillsclient_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/skills"
	"github.com/mcpkit/mcpkit-go/ext/skills/skillsclient"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Load checks the size and the digest of what it reads.
func ExampleGet() {
	ctx := context.Background()
	folder := fstest.MapFS{"brew/SKILL.md": {Data: []byte("---\nname: brew\ndescription: Brews tea\n---\n\nUse water of 80 degrees.\n")}}
	c, err := client.Dial(ctx, mcpkit.MustNew(nil, mcpkit.Name("tea", "1.0.0"), skills.FS(folder)))
	if err != nil {
		panic(err)
	}
	defer c.Close()
	skill, err := skillsclient.Get(ctx, c, "skill://brew/SKILL.md")
	if err != nil {
		panic(err)
	}
	text, err := skill.Load(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Print(text)
	// Output:
	// ---
	// name: brew
	// description: Brews tea
	// ---
	//
	// Use water of 80 degrees.
}
