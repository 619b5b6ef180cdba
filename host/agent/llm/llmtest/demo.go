package llmtest

import _ "embed" // the script is a file of its own, to be read and copied

// Demo is a script that shows the four skills that come with openSkill, in chats and
// tasks, as JSON.
//
//go:embed demo.json
var Demo []byte
