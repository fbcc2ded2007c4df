package apps_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/apps"
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
		`<style>p { background: \75rl(https://elsewhere.example/x.png) }</style>`,
		`<style>p { background: u\000072 l("https://elsewhere.example/x.png") }</style>`,
		`<style>p { background: url(https\3a //elsewhere.example/x.png) }</style>`,
		`<style>p { background: url("\2f\2f elsewhere.example/x.png") }</style>`,
		`<style>p { background: url(\/\/elsewhere.example/x.png) }</style>`,
		`<style>@\69mport "https://elsewhere.example/x.css"</style>`,
		`<p style="background: \55RL(//elsewhere.example/x.png)">`,
		`<style>p { background: image-set("https://elsewhere.example/x.png" 1x) }</style>`,
		`<style>p { background: -webkit-image-set( 'a.png' type("image/png"), '//elsewhere.example/x.png' 2x) }</style>`,
		`<style>p { background: image-set(url(https://elsewhere.example/x.png) 1x) }</style>`,
		`<style>p { background: image-s\65t("https\3a//elsewhere.example/x.png" 1x) }</style>`,
		`<iframe srcdoc="<img src='https://elsewhere.example/x.png'>"></iframe>`,
		`<iframe srcdoc="&lt;script&gt;import('https://elsewhere.example/x.js')&lt;/script&gt;"></iframe>`,
		`<iframe srcdoc="<iframe srcdoc=&quot;<p style='background: url(//elsewhere.example/x.png)'>&quot;>"></iframe>`,
		`<form action="https://elsewhere.example/collect"><button>go</button></form>`,
		`<form action="/collect" method="post"></form>`,
		`<form><button formaction="//elsewhere.example/collect">go</button></form>`,
		`<form><input type="image" formaction="https://elsewhere.example/collect"></form>`,
		`<a href="https://example.com" ping="https://elsewhere.example/seen">x</a>`,
		`<area ping="/seen">`,
	} {
		_, err := mcpkit.New(&tagged{}, apps.FS(files("board.html", page), apps.Resources("https://other.example")))
		require.ErrorContains(t, err, "page board.html, line 1: ", page)
	}
	for _, page := range []string{
		`<meta http-equiv="content-language" content="en">`,
		`<svg><rect fill="url(#a)" stroke="red"/></svg>`,
		`<table background="` + blocked + `/x.png">`,
		`<svg><script href="` + blocked + `/x.js"></script></svg>`,
		`<style>p { background: \75rl(` + blocked + `/x.png), image-set("` + blocked + `/x.png" 1x) }</style>`,
		`<iframe srcdoc="<img src='` + blocked + `/x.png'>"></iframe>`,
		`<form onsubmit="send(event)"><button>go</button></form><form action=""></form><form action="#top"></form>`,
		`<form method="dialog" action="/ignored"><button>ok</button></form>`,
		`<a href="` + blocked + `" ping="https://api.example/seen ` + blocked + `/seen">x</a>`,
		`<style>p::before { content: "\201C\a \"url" } .sm\:p-1 { color: red }</style>`,
	} {
		_, err := mcpkit.New(&tagged{}, apps.FS(files("board.html", page), apps.Resources(blocked), apps.Connect("https://api.example", blocked)))
		require.NoError(t, err, page)
	}
}

func TestFaultsOfFormsAndPings(t *testing.T) {
	for page, want := range map[string]string{
		`<form action="https://a.example/x">`:            `page board.html, line 1: <form> sends to "https://a.example/x", but hosts do not let a page go elsewhere; handle the event submit, and call a tool`,
		`<button formaction="x">`:                        `page board.html, line 1: <button> sends to "x", but hosts do not let a page go elsewhere; handle the event submit, and call a tool`,
		`<a ping="https://a.example/x">`:                 `page board.html, line 1: <a> loads "https://a.example/x", but the page may not load from https://a.example; write apps.Page("board", apps.Connect("https://a.example")), or put the file beside the page`,
		"<p>\n<iframe srcdoc='<img src=//a.example/x>'>": `page board.html, line 2: <img> loads "//a.example/x", but the page may not load from https://a.example`,
	} {
		_, err := mcpkit.New(&tagged{}, apps.FS(files("board.html", page)))
		require.ErrorContains(t, err, want)
	}
}

func TestFilesInImageSetsAndFramesBecomePartsOfThePage(t *testing.T) {
	require.Equal(t, `<style>p { background: image-set("data:image/png;base64,UE5H" 1x, url("data:image/png;base64,UE5H") 2x, "data:image/png;base64,UE5H" type("image/png")); content: "\201C" }</style>`,
		read(t, "board.html", `<style>p { background: image-set("a.png" 1x, url(a.png) 2x, '\61 .png' type("image/png")); content: "\201C" }</style>`, "a.png", "PNG"))
	require.Equal(t, `<title>Board</title><iframe title="x" srcdoc="&lt;title&gt;Frame&lt;/title&gt;&lt;img src=&#34;data:image/png;base64,UE5H&#34;&gt;"></iframe>`,
		read(t, "board.html", `<title>Board</title><iframe title="x" srcdoc="<title>Frame</title><img src=a.png>"></iframe>`, "a.png", "PNG"))
	require.Equal(t, `<iframe srcdoc='<p class="a">'></iframe>`, read(t, "board.html", `<iframe srcdoc='<p class="a">'></iframe>`), "other text stays as it is")
}
