package skills_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/skills"
	"github.com/mcpkit/mcpkit-go/ext/skills/skillsclient"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// A server offers a folder of skills, which a program embeds. Package skillsclient lists and loads
// them.
func ExampleFS() {
	ctx := context.Background()
	folder := fstest.MapFS{"brew/SKILL.md": {Data: []byte("---\nname: brew\ndescription: Brews tea\n---\n\nUse water of 80 degrees.\n")}}
	srv := mcpkit.MustNew(nil, mcpkit.Name("tea", "1.0.0"), skills.FS(folder))
	c, err := client.Dial(ctx, srv)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	for skill, err := range skillsclient.List(ctx, c) {
		if err != nil {
			panic(err)
		}
		fmt.Println(skill.URI, skill.Description)
	}
	// Output: skill://brew/SKILL.md Brews tea
}
