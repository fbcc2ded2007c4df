package apps_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/apps"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

func TestPagesDoNotLoadFromElsewhereByOtherMeans(t *testing.T) {
	const blocked = "https://elsewhere.example"
	for _, page := range []string{
		`<META HTTP-EQUIV=Refresh CONTENT="0;URL='https://elsewhere.example/'">`,
		`<img srcset="//elsewhere.example/x.png 2x">`,
		`<img srcset="https&#58;//elsewhere.example/x.png 2x">`,
		`<link rel="preload" as="image" imagesrcset="https://elsewhere.example/x.png 1x">`,
		`<svg><script href="https://elsewhere.example/x.js"></script></svg>`,
		`<svg><script xlink:href="https://elsewhere.example/x.js"/></svg>`,
		`<svg><image href="https://elsewhere.example/x.png"/></svg>`,
		`<svg><use xlink:href="https://elsewhere.example/x.svg#a"/></svg>`,
		`<svg><feImage xlink:href="https://elsewhere.example/x.png"/></svg>`,
		`<svg><rect fill="url(https://elsewhere.example/x.svg#a)"/></svg>`,
		`<image src="https://elsewhere.example/x.png">`,
		`<td background="https://elsewhere.example/x.png">`,
		`<link rel="apple-touch-icon" href="https://elsewhere.example/x.png">`,
		`<link rel="STYLESHEET" href="https://elsewhere.example/x.css">`,
		`<script src="https:elsewhere.example/x.js"></script>`,
		`<script src="HTTPS:/elsewhere.example/x.js"></script>`,
		`<script src="\\elsewhere.example/x.js"></script>`,
		`<script src="/\elsewhere.example/x.js"></script>`,
		"<script src=\"ht\ntps://elsewhere.example/x.js\"></script>",
		`<style>@import/**/"https://elsewhere.example/x.css"</style>`,
		`<style>@font-face { src: URL(//elsewhere.example/x.woff) }</style>`,
		`<script type="IMPORTMAP">{"scopes":{"/":{"a":"https://elsewhere.example/a.js"}}}</script>`,
		`<script type=" text/javascript">import("https://elsewhere.example/a.js")</script>`,
		`<script type="text/ecmascript">import("https://elsewhere.example/a.js")</script>`,
		`<script type="module"/>import "https://elsewhere.example/a.js"</script>`,
		`<template><img src="https://elsewhere.example/x.png"></template>`,
	} {
		_, err := mcpkit.New(&tagged{}, apps.FS(files("board.html", page), apps.Resources("https://other.example")))
		require.ErrorContains(t, err, "page board.html, line 1: ", page)
	}
	for _, page := range []string{
		`<meta http-equiv="content-language" content="en">`,
		`<svg><rect fill="url(#a)" stroke="red"/></svg>`,
		`<table background="` + blocked + `/x.png">`,
		`<svg><script href="` + blocked + `/x.js"></script></svg>`,
	} {
		_, err := mcpkit.New(&tagged{}, apps.FS(files("board.html", page), apps.Resources(blocked)))
		require.NoError(t, err, page)
	}
}
